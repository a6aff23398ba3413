/**
 * Encodes statement parameters for PostgreSQL. Arrays use the binary format: in text format, both sides would process
 * the quotes of every JSON document, at more than the cost of the rest of a batch.
 */

const TEXT = 25;
const INT8 = 20;
const FLOAT8 = 701;
const HEADER_BYTES = 20;

/** Encodes `text[]`. The strings must not contain U+0000. */
export function textArray(values: readonly (string | undefined)[]): Buffer {
  let chars = 0;
  for (const value of values) chars += value?.length ?? 0;
  // Mostly ASCII: starts with one byte per character and grows only if a string does not fit.
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

/** Encodes `bigint[]` of safe integers. */
export function bigintArray(values: readonly number[]): Buffer {
  return fixedArray(INT8, values, (out, value, at) => out.writeBigInt64BE(BigInt(value), at));
}

/** Encodes `double precision[]`: JavaScript's own numbers, so that a bound compares the same on both sides. */
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

/**
 * Writes the number of dimensions, the null flag, the element type, and the length and lower bound of the one
 * dimension.
 */
function writeHeader(out: Buffer, type: number, length: number, nulls: boolean): number {
  let at = out.writeInt32BE(length === 0 ? 0 : 1, 0);
  at = out.writeInt32BE(nulls ? 1 : 0, at);
  at = out.writeInt32BE(type, at);
  if (length === 0) return at;
  at = out.writeInt32BE(length, at);
  return out.writeInt32BE(1, at);
}

/** UTF-8 takes at most three bytes per UTF-16 code unit. Counts exactly only if that bound is too large. */
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
