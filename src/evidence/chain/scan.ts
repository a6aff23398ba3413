/**
 * The quick reading of a ledger line, on its bytes. A line that is a canonical record of the fields we write
 * is recognised whole and its values are found by position; nothing is decoded. Every other line, good or
 * bad, is left to the strict reader.
 */
import { RECORD_FIELDS, type RecordField } from "../../ledger/record.ts";

const FIELDS = Object.keys(RECORD_FIELDS) as RecordField[];
const COUNT = FIELDS.length;
const MAX_DIGITS = 15;
/** Words are read four bytes at a time and may reach beyond a line; a buffer needs this much behind its text. */
export const SLACK = 16;

/** Where each field's value begins in the line that was scanned last; 0 where the field is absent. */
export class Found {
  readonly at = new Int32Array(COUNT);
  /** Behind the value. */
  readonly to = new Int32Array(COUNT);
}

const EVENT = FIELDS.indexOf("event");
export const HASH = FIELDS.indexOf("hash");
export const PREV = FIELDS.indexOf("prev");
export const RUN_ID = FIELDS.indexOf("run_id");
export const RUN_SEQ = FIELDS.indexOf("run_seq");
export const SEQ = FIELDS.indexOf("seq");
const TS_MS = FIELDS.indexOf("ts_ms");

/** Each field's `"name":` as 32-bit words; the last one overlaps, so that it ends where the text ends. */
const WORDS_EACH = 8;
const KEY_BYTES = new Int32Array(COUNT);
const KEY_WORDS = new Int32Array(COUNT);
const KEYS = new Int32Array(COUNT * WORDS_EACH);
const IS_NUMBER = new Uint8Array(COUNT);
FIELDS.forEach((name, field) => {
  const text = Buffer.from(`"${name}":`);
  const words = Math.floor(text.length / 4);
  for (let i = 0; i < words; i++) KEYS[field * WORDS_EACH + i] = text.readInt32LE(i * 4);
  KEYS[field * WORDS_EACH + words] = text.readInt32LE(text.length - 4);
  KEY_WORDS[field] = words;
  KEY_BYTES[field] = text.length;
  IS_NUMBER[field] = RECORD_FIELDS[name] === "count" ? 1 : 0;
});

/** The position behind the record's closing brace, or -1 when the line needs the strict reader. */
export function scanRecord(view: DataView, bytes: Uint8Array, start: number, found: Found): number {
  const { at, to } = found;
  for (let i = 0; i < COUNT; i++) at[i] = 0;
  if (bytes[start] !== 0x7b) return -1;
  let p = start;
  let field = 0;
  do {
    p++;
    field = fieldAt(view, p, field);
    if (field < 0) return -1;
    p += KEY_BYTES[field]!;
    at[field] = p;
    p = IS_NUMBER[field] === 1 ? numberEnd(bytes, p) : stringEnd(view, bytes, p);
    if (p < 0) return -1;
    to[field] = p;
    field++;
  } while (bytes[p] === 0x2c);
  if (bytes[p] !== 0x7d) return -1;
  if (at[EVENT] === 0 || at[HASH] === 0 || at[PREV] === 0 || at[SEQ] === 0 || at[TS_MS] === 0) return -1;
  if (to[HASH]! - at[HASH]! !== 66 || to[PREV]! - at[PREV]! !== 66) return -1;
  return (at[RUN_ID] === 0) === (at[RUN_SEQ] === 0) ? p + 1 : -1;
}

/** Which field's key stands here; only those behind the last one can, because keys are sorted. */
function fieldAt(view: DataView, p: number, from: number): number {
  const first = view.getInt32(p, true);
  next: for (let field = from; field < COUNT; field++) {
    const base = field * WORDS_EACH;
    if (KEYS[base] !== first) continue;
    const words = KEY_WORDS[field]!;
    for (let i = 1; i < words; i++) {
      if (KEYS[base + i] !== view.getInt32(p + i * 4, true)) continue next;
    }
    if (KEYS[base + words] === view.getInt32(p + KEY_BYTES[field]! - 4, true)) return field;
  }
  return -1;
}

function numberEnd(bytes: Uint8Array, start: number): number {
  if (bytes[start] === 0x30) return start + 1;
  let p = start;
  while (bytes[p]! >= 0x30 && bytes[p]! <= 0x39) p++;
  return p === start || p - start > MAX_DIGITS ? -1 : p;
}

/**
 * Behind the closing quote. Looks at eight bytes at a time for one that is not plain text: a control
 * character, a quote, a backslash, or anything beyond ASCII. A borrow can only mark bytes behind a true
 * hit, so the first one marked is right.
 */
function stringEnd(view: DataView, bytes: Uint8Array, start: number): number {
  if (bytes[start] !== 0x22) return -1;
  let p = start + 1;
  const last = bytes.length - 8;
  while (p >= 0 && p <= last) {
    const x = view.getInt32(p, true);
    const y = view.getInt32(p + 4, true);
    const inX = stops(x);
    const inY = stops(y);
    if ((inX | inY) === 0) {
      p += 8;
      continue;
    }
    p += inX !== 0 ? firstByte(inX) : 4 + firstByte(inY);
    if (bytes[p] === 0x22) return p + 1;
    p = bytes[p] === 0x5c ? escapeEnd(bytes, p) : characterEnd(bytes, p);
  }
  return -1;
}

const SHORT_ESCAPES = new Set([...'"\\bfnrt'].map((c) => c.charCodeAt(0)));
/** The control characters that have no short escape, as RFC 8785 writes them behind `\u00`. */
const LONG_ESCAPES = new Set(
  Array.from({ length: 0x20 }, (_, code) => code)
    .filter((code) => ![0x08, 0x09, 0x0a, 0x0c, 0x0d].includes(code))
    .map((code) => code.toString(16).padStart(2, "0")),
);

/** Behind an escape that canonical JSON would write so, else -1. */
function escapeEnd(bytes: Uint8Array, p: number): number {
  if (SHORT_ESCAPES.has(bytes[p + 1]!)) return p + 2;
  if (bytes[p + 1] !== 0x75 || bytes[p + 2] !== 0x30 || bytes[p + 3] !== 0x30) return -1;
  return LONG_ESCAPES.has(String.fromCharCode(bytes[p + 4]!, bytes[p + 5]!)) ? p + 6 : -1;
}

/** Behind a well-formed UTF-8 sequence of two to four bytes, else -1. */
function characterEnd(bytes: Uint8Array, p: number): number {
  const c = bytes[p]!;
  const second = bytes[p + 1]!;
  if (c < 0xc2 || c > 0xf4 || (second & 0xc0) !== 0x80) return -1;
  if (c < 0xe0) return p + 2;
  if ((bytes[p + 2]! & 0xc0) !== 0x80) return -1;
  // Overlong forms and surrogates have no place in UTF-8.
  if (c < 0xf0) return (c === 0xe0 && second < 0xa0) || (c === 0xed && second > 0x9f) ? -1 : p + 3;
  if ((bytes[p + 3]! & 0xc0) !== 0x80) return -1;
  return (c === 0xf0 && second < 0x90) || (c === 0xf4 && second > 0x8f) ? -1 : p + 4;
}

function stops(x: number): number {
  return (
    ((x - 0x20202020) | ((x ^ 0x22222222) - 0x01010101) | ((x ^ 0x5c5c5c5c) - 0x01010101) | x) & 0x80808080
  );
}

function firstByte(marks: number): number {
  return (31 - Math.clz32(marks & -marks)) >> 3;
}

/** A number that scanRecord found. */
export function numberAt(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let p = from; p < to; p++) value = value * 10 + bytes[p]! - 0x30;
  return value;
}

/** A hash in hex, kept as its bytes: copied and compared word by word, without making a string of it. */
export class HashSlot {
  private readonly bytes = new Uint8Array(64);
  private readonly view = new DataView(this.bytes.buffer);

  take(from: DataView, at: number): void {
    for (let i = 0; i < 64; i += 4) this.view.setInt32(i, from.getInt32(at + i, true), true);
  }

  set(hash: string): void {
    for (let i = 0; i < 64; i++) this.bytes[i] = hash.charCodeAt(i);
  }

  isAt(other: DataView, at: number): boolean {
    for (let i = 0; i < 64; i += 4) {
      if (this.view.getInt32(i, true) !== other.getInt32(at + i, true)) return false;
    }
    return true;
  }

  spells(hash: string): boolean {
    for (let i = 0; i < 64; i++) if (this.bytes[i] !== hash.charCodeAt(i)) return false;
    return true;
  }
}
