/**
 * Cuts a text to `most` UTF-16 code units without leaving half of a surrogate pair. Strict UTF-8 and JSON readers reject
 * half a pair, so they could never verify a record that contains one.
 */
export const cutText = (text: string, most: number): string => text.slice(0, most).toWellFormed();
