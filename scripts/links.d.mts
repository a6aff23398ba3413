export function deadLinks(folder: string): string[];
