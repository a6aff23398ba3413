/**
 * What goes to PostgreSQL as a parameter. Arrays travel in binary form: as text every quote of every
 * JSON document would be escaped here and unescaped there, which costs more than the rest of a batch.
 */

const TEXT = 25;
const INT8 = 20;
const FLOAT8 = 701;
const HEADER_BYTES = 20;

/** `text[]`. The strings must be free of U+0000. */
export function textArray(values: readonly (string | undefined)[]): Buffer {
  let chars = 0;
  for (const value of values) chars += value?.length ?? 0;
  // Mostly ASCII, so begin with a byte a character and grow only when a string does not fit.
  let out: Buffer = Buffer.allocUnsafe(HEADER_BYTES + values.length * 4 + chars);
  let at = writeHeader(out, TEXT, values.length, true);
  for (const value of values) {
    if (value === undefined) {
      out = roomFor(out, at, 4);
      at = out.writeInt32BE(-1, at);
      continue;
    }
    out = roomForText(out, at + 4, value);
    const bytes = out.write(value, at + 4, "utf8");
    out.writeInt32BE(bytes, at);
    at += 4 + bytes;
  }
  return out.subarray(0, at);
}

/** `bigint[]` of safe integers. */
export function bigintArray(values: readonly number[]): Buffer {
  return fixedArray(INT8, values, (out, value, at) => out.writeBigInt64BE(BigInt(value), at));
}

/** `double precision[]`: JavaScript's own numbers, so that a bound compares the same on both sides. */
export function doubleArray(values: readonly number[]): Buffer {
  return fixedArray(FLOAT8, values, (out, value, at) => out.writeDoubleBE(value, at));
}

function fixedArray(
  type: number,
  values: readonly number[],
  write: (out: Buffer, value: number, at: number) => number,
): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + values.length * 12);
  let at = writeHeader(out, type, values.length, false);
  for (const value of values) at = write(out, value, out.writeInt32BE(8, at));
  return out.subarray(0, at);
}

/** Dimensions, whether there may be nulls, the element type, then length and lower bound of the one dimension. */
function writeHeader(out: Buffer, type: number, length: number, nulls: boolean): number {
  let at = out.writeInt32BE(length === 0 ? 0 : 1, 0);
  at = out.writeInt32BE(nulls ? 1 : 0, at);
  at = out.writeInt32BE(type, at);
  if (length === 0) return at;
  at = out.writeInt32BE(length, at);
  return out.writeInt32BE(1, at);
}

/** UTF-8 takes at most three bytes for a UTF-16 unit; the exact count is taken only where that is too much. */
function roomForText(out: Buffer, used: number, value: string): Buffer {
  if (used + value.length * 3 <= out.length) return out;
  return roomFor(out, used, Buffer.byteLength(value, "utf8"));
}

function roomFor(out: Buffer, used: number, more: number): Buffer {
  if (used + more <= out.length) return out;
  const larger = Buffer.allocUnsafe(Math.max(out.length * 2, used + more));
  out.copy(larger, 0, 0, used);
  return larger;
}
