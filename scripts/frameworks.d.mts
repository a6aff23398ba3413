export function ensureFrameworks(): Promise<string>;
export function newerNode(): Promise<string>;
