/**
 * Keys as databases can hold them: PostgreSQL's text has no U+0000, and SQLite reads a text only up to there; but a tool
 * may be called anything. The spelling used in its place is unambiguous and keeps the order of any two.
 */
const UNREADABLE = /[\u0000\u0001]/;
const UNREADABLE_ALL = /[\u0000\u0001]/g;
const SPELLED = /\u0001[\u0001\u0002]/g;

export function toText(value: string): string {
  if (!UNREADABLE.test(value)) return value;
  return value.replace(UNREADABLE_ALL, (c) => (c === "\0" ? "\u0001\u0001" : "\u0001\u0002"));
}

export function fromText(text: string): string {
  if (!UNREADABLE.test(text)) return text;
  return text.replace(SPELLED, (pair) => (pair === "\u0001\u0001" ? "\0" : "\u0001"));
}
