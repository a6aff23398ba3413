/**
 * Strict reader for one ledger record: its shape, the bytes that its hash covers, and the values that a chain check
 * needs. Unknown fields are allowed, because the hash covers them.
 */
import { messageOf } from "../kernel/errors.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../kernel/json/json.ts";
import { recordFieldsOfKind } from "./record.ts";

export interface RecordFacts {
  seq: number;
  prev: string;
  /** The hash stated in the record. The caller verifies it. */
  hash: string;
  run_id: string | undefined;
  run_seq: number | undefined;
  /** Canonical JSON of every field except `hash`: the input of the hash, and the leaf of the Merkle tree. */
  body: string;
}

/** The facts of the record, or a text that describes the problem. */
type Reading = RecordFacts | string;

const HEX64 = /^[0-9a-f]{64}$/;
const COUNTS = recordFieldsOfKind("count");
const TEXTS = recordFieldsOfKind("text");

export function isHash(value: unknown): value is string {
  return typeof value === "string" && HEX64.test(value);
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Reads a ledger line, which must be canonical JSON to the byte. */
export function readRecordLine(line: string): Reading {
  const value = parsed(line);
  if (typeof value === "string") return value;
  const facts = readingOf(value);
  if (typeof facts !== "string" && toCanonicalJson(value) !== line) return "the line is not canonical JSON";
  return facts;
}

/** Reads a record from a bundle, where whitespace between members does not matter. */
export function readRecordText(text: string): Reading {
  const value = parsed(text);
  if (typeof value === "string") return value;
  return hasPlainNumbers(text) ? readingOf(value) : "a number is not written as a plain integer";
}

function readingOf(value: JsonValue): Reading {
  if (!isJsonObject(value)) return "it is not a JSON object";
  const { hash, ...rest } = value;
  const { prev, seq, run_id, run_seq } = rest;
  if (!isHash(hash)) return "its hash is missing or is not 64 hex digits";
  if (!isHash(prev)) return "its prev is missing or is not 64 hex digits";
  const problem = shapeProblem(rest);
  if (problem !== undefined) return problem;
  return {
    seq: seq as number,
    prev,
    hash,
    run_id: run_id as string | undefined,
    run_seq: run_seq as number | undefined,
    body: toCanonicalJson(rest),
  };
}

function shapeProblem(record: JsonObject): string | undefined {
  for (const name of ["seq", "ts_ms", "event"]) {
    if (record[name] === undefined) return `it has no ${name}`;
  }
  for (const name of COUNTS) {
    if (record[name] !== undefined && !isCount(record[name]))
      return `its ${name} is not a whole number from 0`;
  }
  for (const name of TEXTS) {
    if (record[name] !== undefined && typeof record[name] !== "string") return `its ${name} is not a text`;
  }
  if ((record["run_id"] === undefined) !== (record["run_seq"] === undefined)) {
    return "it has one of run_id and run_seq without the other";
  }
  const odd = Object.keys(record).find((name) => !isAllowed(record[name]!));
  return odd === undefined
    ? undefined
    : "a value must be a text, a whole number, a boolean or a list of those";
}

function isAllowed(value: JsonValue): boolean {
  return isScalar(value) || (Array.isArray(value) && value.every(isScalar));
}

function isScalar(value: JsonValue): boolean {
  return typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value);
}

function parsed(text: string): JsonValue | string {
  try {
    const value = parseJson(text);
    // A string here would pass for the description of a problem.
    return typeof value === "string" ? "it is not a JSON object" : value;
  } catch (error) {
    return `it cannot be read (${messageOf(error)})`;
  }
}

const ODD_NUMBER = /\d[.eE]|-0(?!\d)/;

/** Checks that each number is written as a plain integer. Other readers may disagree on `1.0`, `1e3` and `-0`. */
export function hasPlainNumbers(text: string): boolean {
  for (let at = 0; ; ) {
    const open = text.indexOf('"', at);
    const between = text.slice(at, open < 0 ? text.length : open);
    if (ODD_NUMBER.test(between)) return false;
    if (open < 0) return true;
    at = endOfString(text, open);
  }
}

/** Scans by hand: a regular expression keeps a step per character, so a long string exhausts its stack. */
function endOfString(text: string, open: number): number {
  for (let i = open + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x5c) i++;
    else if (c === 0x22) return i + 1;
  }
  return text.length;
}
