/**
 * Reads a bundle from a file. svc writes one record per line, and such records are checked in place. A bundle with
 * another layout is read into memory, up to a limit.
 */
import { invalidError, messageOf } from "../../kernel/errors.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { isJsonObject, type JsonObject, parseJson, parseJsonBytes } from "../../kernel/json/json.ts";
import { hasPlainNumbers } from "../../ledger/read-record.ts";
import type { LineFile, LineRegion } from "../chain/line-file.ts";

/** Limit on bytes read into memory at once: a bundle with another layout, or the proofs of a large run. */
export const MAX_WHOLE_BYTES = 64 * 1_048_576;
const MAX_CLOSING_BYTES = 256 * 1_048_576;
const MAX_OPENING_BYTES = 65_536;
const STEP = 65_536;
const NEWLINE = 0x0a;

/** The members around the records, and the records: a region of the file, or canonical lines in memory. */
export type BundleFile =
  | { members: JsonObject; region: LineRegion }
  | { members: JsonObject; lines: string[] };
export type BundleReading = BundleFile | { problem: string };

/** Reads the bundle as a region of lines; null if it has another layout. */
export function readBundleRegion(file: LineFile): BundleReading | null {
  const { size } = file;
  const start = file.bytes(0, MAX_OPENING_BYTES);
  const firstEnd = start.indexOf(NEWLINE);
  const closing = closingOf(file, size);
  if (firstEnd < 0 || closing === null || closing.at < firstEnd + 1) return null;
  const opening = decode(start.subarray(0, firstEnd));
  const before = opening?.endsWith('"records":[') ? parsed(`${opening}]}`) : null;
  const after = parsed(closing.text);
  if (before === null || after === null) return null;
  const { records: _, ...members } = before;
  const twice = Object.keys(after).find((name) => Object.hasOwn(before, name));
  if (twice !== undefined) return { problem: `the key ${JSON.stringify(twice)} appears twice` };
  return { members: { ...members, ...after }, region: { start: firstEnd + 1, end: closing.at } };
}

/** Reads a bundle of any layout into memory. */
export function readBundleInMemory(file: LineFile): BundleReading {
  if (file.size > MAX_WHOLE_BYTES) {
    throw invalidError(
      `${file.path}: is larger than ${MAX_WHOLE_BYTES} bytes and not laid out as svc writes a bundle (one record per line), so it cannot be checked here`,
    );
  }
  let value: unknown;
  let text: string;
  try {
    const bytes = file.bytes(0, file.size);
    value = parseJsonBytes(bytes);
    text = bytes.toString();
  } catch (error) {
    return { problem: `it cannot be read (${messageOf(error).replace(/^body /, "the file ")})` };
  }
  if (!isJsonObject(value)) return { problem: "it is not a JSON object" };
  if (!hasPlainNumbers(text)) return { problem: "a number in it is not written as a plain integer" };
  const { records, ...members } = value;
  if (!Array.isArray(records)) return { problem: "it has no records" };
  return { members, lines: records.map((record) => toCanonicalJson(record)) };
}

/** The last line, completed to a JSON object, and its offset. */
function closingOf(file: LineFile, size: number): { at: number; text: string } | null {
  const tail = file.bytes(Math.max(0, size - 64), size);
  const space = tail.length - tail.toString("latin1").trimEnd().length;
  const end = size - space;
  for (let to = end; to > 0 && end - to <= MAX_CLOSING_BYTES; to -= STEP) {
    const from = Math.max(0, to - STEP);
    const found = file.bytes(from, to).lastIndexOf(NEWLINE);
    if (found < 0) continue;
    const at = from + found + 1;
    const line = decode(file.bytes(at, end));
    if (line === "]}") return { at, text: "{}" };
    return line?.startsWith("],") ? { at, text: `{${line.slice(2)}` } : null;
  }
  return null;
}

function parsed(text: string): JsonObject | null {
  try {
    const value = parseJson(text);
    return isJsonObject(value) && hasPlainNumbers(text) ? value : null;
  } catch {
    return null;
  }
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
