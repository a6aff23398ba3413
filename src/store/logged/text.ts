/**
 * Keys as SQLite can give them back: a text with U+0000 in it is stored whole, but read only up to
 * there. Spelled so that the order of any two stays what it was.
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
