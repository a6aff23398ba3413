export function ensureFrameworks(options?: { folder?: string; executables?: boolean }): Promise<string>;
export function newerNode(): Promise<string>;
