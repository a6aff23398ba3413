/**
 * Fast byte-level scanner of ledger lines. It accepts canonical records with known fields and finds their values by
 * position, without decoding. All other lines, good or bad, are left to the strict reader.
 */
import { RECORD_FIELDS, type RecordField } from "../../ledger/record.ts";

const FIELDS = Object.keys(RECORD_FIELDS) as RecordField[];
const COUNT = FIELDS.length;
const MAX_DIGITS = 15;
/** A hash in quotes. */
const HASH_BYTES = 66;
/** Spare bytes that a buffer needs after its text: the scanner reads four bytes at a time and may read past a line. */
export const SCAN_PADDING_BYTES = 24;

const EVENT = FIELDS.indexOf("event");
export const HASH_FIELD = FIELDS.indexOf("hash");
export const PREV_FIELD = FIELDS.indexOf("prev");
export const RUN_ID_FIELD = FIELDS.indexOf("run_id");
export const RUN_SEQ_FIELD = FIELDS.indexOf("run_seq");
export const SEQ_FIELD = FIELDS.indexOf("seq");
const TS_MS = FIELDS.indexOf("ts_ms");

/** Positions of the values in the last scanned line. */
export class ScannedFields {
  /** Start of each field's value. The entry of an absent field is from an earlier line. */
  readonly at = new Int32Array(COUNT);
  /** End of each field's value. */
  readonly to = new Int32Array(COUNT);
  /** Successor of each field, and the first field at 0. Most lines have the fields of the line before. */
  readonly after = new Uint8Array(COUNT + 1);
  /** One bit for each present field. */
  fields = 0;

  has(field: number): boolean {
    return (this.fields & (1 << field)) !== 0;
  }
}

const REQUIRED = (1 << EVENT) | (1 << HASH_FIELD) | (1 << PREV_FIELD) | (1 << SEQ_FIELD) | (1 << TS_MS);

/** Each field's `"name":` as padded 32-bit words, and masks of the bits to compare. */
const WORDS_EACH = 5;
const KEY_BYTES = new Int32Array(COUNT);
const KEYS = new Int32Array(COUNT * WORDS_EACH);
const MASKS = new Int32Array(COUNT * WORDS_EACH);
/** Kinds of values: a text, a number, or a hash that is compared as a unit later. */
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
    RECORD_FIELDS[name] === "count" ? NUMBER : field === HASH_FIELD || field === PREV_FIELD ? COMPARED : TEXT;
});

/**
 * Offset after the record's closing brace, or -1 if the line needs the strict reader. Does not check the values of
 * `hash` and `prev`; the caller compares them with computed hashes.
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
  return found.has(RUN_ID_FIELD) === found.has(RUN_SEQ_FIELD) ? p + 1 : -1;
}

/** The field whose key is at this position. Keys are sorted, so only fields after the previous one are possible. */
function fieldAt(view: DataView, p: number, from: number): number {
  for (let field = from; field < COUNT; field++) if (isKey(view, p, field)) return field;
  return -1;
}

/** Compares all words without branches. */
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
 * Offset after the closing quote. Checks eight bytes at a time for a control character, a quote, a backslash or a
 * non-ASCII byte. A borrow can only mark bytes after a true hit, so the first marked byte is correct.
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
/** Control characters without a short escape, as RFC 8785 writes them after `\u00`. */
const LONG_ESCAPES = new Set(
  Array.from({ length: 0x20 }, (_, code) => code)
    .filter((code) => ![0x08, 0x09, 0x0a, 0x0c, 0x0d].includes(code))
    .map((code) => code.toString(16).padStart(2, "0")),
);

/** Offset after an escape in its canonical form, otherwise -1. */
function escapeEnd(bytes: Uint8Array, p: number): number {
  if (SHORT_ESCAPES.has(bytes[p + 1]!)) return p + 2;
  if (bytes[p + 1] !== 0x75 || bytes[p + 2] !== 0x30 || bytes[p + 3] !== 0x30) return -1;
  return LONG_ESCAPES.has(String.fromCharCode(bytes[p + 4]!, bytes[p + 5]!)) ? p + 6 : -1;
}

/** Offset after a well-formed UTF-8 sequence of two to four bytes, otherwise -1. */
function characterEnd(bytes: Uint8Array, p: number): number {
  const c = bytes[p]!;
  const second = bytes[p + 1]!;
  if (c < 0xc2 || c > 0xf4 || (second & 0xc0) !== 0x80) return -1;
  if (c < 0xe0) return p + 2;
  if ((bytes[p + 2]! & 0xc0) !== 0x80) return -1;
  // Overlong forms and surrogates are invalid UTF-8.
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

/** The two hex digits of each byte, as two ASCII bytes. */
const HEX = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, "0")).readUInt16LE(),
);

/** A hex hash as ASCII bytes, copied and compared word by word without creating a string. */
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

  /** Whether this is the hash with these raw bytes, one per character. */
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
