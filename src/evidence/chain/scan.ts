/**
 * The quick reading of a ledger line, on its bytes. A line that is a canonical record of the fields we write
 * is recognised whole and its values are found by position; nothing is decoded. Every other line, good or
 * bad, is left to the strict reader.
 */
import { RECORD_FIELDS, type RecordField } from "../../ledger/record.ts";

const FIELDS = Object.keys(RECORD_FIELDS) as RecordField[];
const COUNT = FIELDS.length;
const MAX_DIGITS = 15;
/** A hash in quotes. */
const HASH_BYTES = 66;
/** Words are read four bytes at a time and may reach beyond a line; a buffer needs this much behind its text. */
export const SLACK = 24;

const EVENT = FIELDS.indexOf("event");
export const HASH = FIELDS.indexOf("hash");
export const PREV = FIELDS.indexOf("prev");
export const RUN_ID = FIELDS.indexOf("run_id");
export const RUN_SEQ = FIELDS.indexOf("run_seq");
export const SEQ = FIELDS.indexOf("seq");
const TS_MS = FIELDS.indexOf("ts_ms");

/** Where the values of the line that was scanned last stand. */
export class ScannedFields {
  /** Where each field's value begins; what an absent field says is of an earlier line. */
  readonly at = new Int32Array(COUNT);
  /** Behind the value. */
  readonly to = new Int32Array(COUNT);
  /** Which field came behind each, and first of all (at 0): the next line mostly has the same ones. */
  readonly after = new Uint8Array(COUNT + 1);
  /** One bit for each field that is there. */
  fields = 0;

  has(field: number): boolean {
    return (this.fields & (1 << field)) !== 0;
  }
}

const REQUIRED = (1 << EVENT) | (1 << HASH) | (1 << PREV) | (1 << SEQ) | (1 << TS_MS);

/** Each field's `"name":` as 32-bit words, padded, and which of their bits count. */
const WORDS_EACH = 5;
const KEY_BYTES = new Int32Array(COUNT);
const KEYS = new Int32Array(COUNT * WORDS_EACH);
const MASKS = new Int32Array(COUNT * WORDS_EACH);
/** How a field's value is written: a text, a number, or a hash that is compared whole later on. */
const TEXT = 0;
const NUMBER = 1;
const COMPARED = 2;
const KINDS = new Uint8Array(COUNT);
FIELDS.forEach((name, field) => {
  const text = Buffer.from(`"${name}":`);
  const key = Buffer.alloc(WORDS_EACH * 4);
  text.copy(key);
  const mask = Buffer.alloc(key.length).fill(0xff, 0, text.length);
  for (let i = 0; i < WORDS_EACH; i++) {
    KEYS[field * WORDS_EACH + i] = key.readInt32LE(i * 4);
    MASKS[field * WORDS_EACH + i] = mask.readInt32LE(i * 4);
  }
  KEY_BYTES[field] = text.length;
  KINDS[field] =
    RECORD_FIELDS[name] === "count" ? NUMBER : field === HASH || field === PREV ? COMPARED : TEXT;
});

/**
 * The position behind the record's closing brace, or -1 when the line needs the strict reader. What `hash`
 * and `prev` say is not looked at: whoever takes the record compares them with hashes it has computed.
 */
export function scanRecord(view: DataView, bytes: Uint8Array, start: number, found: ScannedFields): number {
  const { at, to, after } = found;
  if (bytes[start] !== 0x7b) return -1;
  let p = start;
  let from = 0;
  let fields = 0;
  do {
    p++;
    let field = after[from]!;
    if (field < from || !isKey(view, p, field)) {
      field = fieldAt(view, p, from);
      if (field < 0) return -1;
      after[from] = field;
    }
    p += KEY_BYTES[field]!;
    at[field] = p;
    const kind = KINDS[field]!;
    if (kind === TEXT) p = stringEnd(view, bytes, p);
    else if (kind === NUMBER) p = numberEnd(bytes, p);
    else p = bytes[p] === 0x22 && bytes[p + HASH_BYTES - 1] === 0x22 ? p + HASH_BYTES : -1;
    if (p < 0) return -1;
    to[field] = p;
    fields |= 1 << field;
    from = field + 1;
  } while (bytes[p] === 0x2c);
  found.fields = fields;
  if (bytes[p] !== 0x7d || (fields & REQUIRED) !== REQUIRED) return -1;
  return found.has(RUN_ID) === found.has(RUN_SEQ) ? p + 1 : -1;
}

/** Which field's key stands here; only those behind the last one can, because keys are sorted. */
function fieldAt(view: DataView, p: number, from: number): number {
  for (let field = from; field < COUNT; field++) if (isKey(view, p, field)) return field;
  return -1;
}

/** Compared in one go, without a branch for each word. */
function isKey(view: DataView, p: number, field: number): boolean {
  const k = field * WORDS_EACH;
  return (
    ((view.getInt32(p, true) ^ KEYS[k]!) |
      ((view.getInt32(p + 4, true) ^ KEYS[k + 1]!) & MASKS[k + 1]!) |
      ((view.getInt32(p + 8, true) ^ KEYS[k + 2]!) & MASKS[k + 2]!) |
      ((view.getInt32(p + 12, true) ^ KEYS[k + 3]!) & MASKS[k + 3]!) |
      ((view.getInt32(p + 16, true) ^ KEYS[k + 4]!) & MASKS[k + 4]!)) ===
    0
  );
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

/** For each byte its two hex digits, as they stand in a text. */
const HEX = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, "0")).readUInt16LE(),
);

/** A hash in hex, kept as its bytes: copied and compared word by word, without making a string of it. */
export class HashSlot {
  private readonly bytes = Buffer.from(new ArrayBuffer(64));
  private readonly words = new Int32Array(this.bytes.buffer);

  take(from: DataView, at: number): void {
    for (let i = 0; i < 16; i++) this.words[i] = from.getInt32(at + 4 * i, true);
  }

  set(hash: string): void {
    this.bytes.write(hash, "latin1");
  }

  isAt(other: DataView, at: number): boolean {
    for (let i = 0; i < 16; i++) if (this.words[i] !== other.getInt32(at + 4 * i, true)) return false;
    return true;
  }

  /** Whether it is the hash whose bytes these are, one to a character. */
  spells(binary: string): boolean {
    for (let i = 0; i < 16; i++) {
      const word = HEX[binary.charCodeAt(2 * i)]! | (HEX[binary.charCodeAt(2 * i + 1)]! << 16);
      if (this.words[i] !== word) return false;
    }
    return true;
  }

  toString(): string {
    return this.bytes.toString("latin1");
  }
}
