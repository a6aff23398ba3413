export function compiledFolder(): string;
