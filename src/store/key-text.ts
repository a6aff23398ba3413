/**
 * Escapes keys for databases. PostgreSQL's text has no U+0000, and SQLite stops reading a text there, but tool names
 * can contain any character. The escaped form is unambiguous and keeps the order of keys.
 */
const UNREADABLE = /[\u0000\u0001]/;
const UNREADABLE_ALL = /[\u0000\u0001]/g;
const SPELLED = /\u0001[\u0001\u0002]/g;

export function toKeyText(value: string): string {
  if (!UNREADABLE.test(value)) return value;
  return value.replace(UNREADABLE_ALL, (c) => (c === "\0" ? "\u0001\u0001" : "\u0001\u0002"));
}

export function fromKeyText(text: string): string {
  if (!UNREADABLE.test(text)) return text;
  return text.replace(SPELLED, (pair) => (pair === "\u0001\u0001" ? "\0" : "\u0001"));
}
