/**
 * At most so many places of a text, and no half of a character that takes two: neither UTF-8 nor JSON's strict readers
 * have one, so that a record with it could be verified by none of them.
 */
export const cutText = (text: string, most: number): string => text.slice(0, most).toWellFormed();
