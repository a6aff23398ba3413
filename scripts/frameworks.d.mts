export function ensureFrameworks(folder?: string): Promise<string>;
export function newerNode(): Promise<string>;
