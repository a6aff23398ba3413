export const TEXTS_FILE: string;
export function assetTexts(): string;
