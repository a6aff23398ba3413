/**
 * Checking a stretch of the chain, line by line, in constant memory. Stretches can be checked apart, on
 * several cores, and joined at their borders.
 */
import { canonical } from "../kernel/canonical.ts";
import { messageOf } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { isJsonObject, type JsonObject, parseJson } from "../kernel/json.ts";
import { GENESIS } from "./record.ts";

export interface Problem {
  seq: number;
  problem: string;
}

/** What joining needs to know of a checked stretch. */
export interface Stretch {
  first_seq: number;
  /** The hash the first record links to. */
  prev: string;
  records: number;
  hash: string;
  /** For each run seen: its first and its last number within the run. */
  runs: Map<string, [first: number, last: number]>;
  bad: Problem | null;
}

/** Canonical text of a JSON string, with its escapes as RFC 8785 writes them. */
const S = `"(?:[^"\\\\\\u0000-\\u001f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]|\\\\["\\\\bfnrt]|\\\\u00(?:0[0-7be-f]|1[0-9a-f]))*"`;
const N = "(?:0|[1-9]\\d{0,15})";
const opt = (name: string, value: string) => `(?:,"${name}":${value})?`;
/**
 * A whole record in canonical form. A line that fits needs no parsing: its bytes without the hash member
 * are what the hash covers. Anything else takes the slow way.
 */
const CANONICAL = new RegExp(
  `^(\\{"actor":${S}${opt("after_hash", S)}${opt("args_hash", S)}${opt("before_hash", S)}${opt("detail", S)}${opt("effect", S)},"event":${S}),"hash":"([0-9a-f]{64})"` +
    `(${opt("manifest_version", S)},"prev":"([0-9a-f]{64})"${opt("reason", S)}${opt("result_hash", S)}` +
    `(?:,"run_id":(${S}))?(?:,"run_seq":(${N}))?${opt("scope_seal", S)},"seq":(${N})${opt("step", N)}` +
    `${opt("tenant", S)}${opt("tool", S)},"ts_ms":${N}\\})$`,
);

interface Seen {
  body: string;
  hash: string;
  prev: string;
  seq: number;
  run_id: string | undefined;
  run_seq: number | undefined;
}

export class ChainVerifier {
  readonly stretch: Stretch;
  /** The bytes that the last good record's hash covers: the leaf of the tree. */
  body = "";

  constructor(first_seq = 0, prev: string | null = GENESIS) {
    this.stretch = { first_seq, prev: prev ?? "", records: 0, hash: prev ?? "", runs: new Map(), bad: null };
    this.anchored = prev !== null;
  }
  private anchored: boolean;

  /** Takes the next line; false once something is wrong. */
  take(line: string): boolean {
    const { stretch } = this;
    if (stretch.bad !== null) return false;
    const seq = stretch.first_seq + stretch.records;
    const seen = readLine(line);
    if (typeof seen === "string") return this.fail(seq, seen);
    if (seen.seq !== seq) return this.fail(seq, `the record at this position says seq ${seen.seq}`);
    if (!this.anchored) {
      stretch.prev = seen.prev;
      this.anchored = true;
    } else if (seen.prev !== stretch.hash) {
      return this.fail(
        seq,
        seq === 0
          ? "the first record does not link to the start"
          : "prev is not the hash of the record before it",
      );
    }
    if (sha256Hex(seen.body) !== seen.hash) return this.fail(seq, "the hash does not match the record");
    if (seen.run_id !== undefined) {
      const problem = this.countRun(seen.run_id, seen.run_seq);
      if (problem !== undefined) return this.fail(seq, problem);
    }
    stretch.hash = seen.hash;
    stretch.records++;
    this.body = seen.body;
    return true;
  }

  private countRun(run_id: string, run_seq: number | undefined): string | undefined {
    if (run_seq === undefined) return "a record of a run has no run_seq";
    const known = this.stretch.runs.get(run_id);
    if (known === undefined) {
      if (this.stretch.first_seq === 0 && run_seq !== 0)
        return `the run's first record has run_seq ${run_seq}`;
      this.stretch.runs.set(run_id, [run_seq, run_seq]);
      return undefined;
    }
    if (run_seq !== known[1] + 1)
      return `run_seq ${run_seq} follows ${known[1]}: a record of this run is missing or moved`;
    known[1] = run_seq;
    return undefined;
  }

  private fail(seq: number, problem: string): false {
    this.stretch.bad = { seq, problem };
    return false;
  }
}

/** Reads what checking needs, or says what is wrong with the line itself. */
function readLine(line: string): Seen | string {
  const match = CANONICAL.exec(line);
  if (match === null) return readSlowly(line);
  return {
    body: match[1]! + match[3]!,
    hash: match[2]!,
    prev: match[4]!,
    run_id: match[5],
    run_seq: match[6] === undefined ? undefined : Number(match[6]),
    seq: Number(match[7]),
  };
}

function readSlowly(line: string): Seen | string {
  let record: JsonObject;
  try {
    const parsed = parseJson(line);
    if (!isJsonObject(parsed)) return "the line is not a JSON object";
    record = parsed;
  } catch (error) {
    return `the line is not JSON (${messageOf(error).replace(/^invalid JSON: /, "")})`;
  }
  const { hash, ...rest } = record;
  const { prev, seq, run_id, run_seq } = rest;
  if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash))
    return "hash is missing or is not 64 hex digits";
  if (typeof prev !== "string" || !/^[0-9a-f]{64}$/.test(prev))
    return "prev is missing or is not 64 hex digits";
  if (!Number.isSafeInteger(seq)) return "seq is missing or not an integer";
  if (typeof rest["event"] !== "string" || !Number.isSafeInteger(rest["ts_ms"]))
    return "event or ts_ms is missing";
  if (run_id !== undefined && typeof run_id !== "string") return "run_id is not a string";
  if (run_seq !== undefined && !Number.isSafeInteger(run_seq)) return "run_seq is not an integer";
  if (!Object.values(rest).every(allowedValue))
    return "a value is neither a string, a safe integer, a boolean nor a list of those";
  if (canonical(record) !== line) return "the line is not canonical JSON";
  return {
    body: canonical(rest),
    hash,
    prev,
    seq: seq as number,
    run_id,
    run_seq: run_seq as number | undefined,
  };
}

function allowedValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((item) => !Array.isArray(item) && allowedValue(item));
  return typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value);
}

/** Joins two neighbouring stretches into `left`; the first problem of the whole wins. */
export function joinStretches(left: Stretch, right: Stretch): Stretch {
  if (left.bad !== null) return left;
  const fail = (problem: string, seq = right.first_seq): Stretch => ({ ...left, bad: { seq, problem } });
  if (right.bad !== null && right.records === 0) return { ...left, bad: right.bad };
  if (right.prev !== left.hash) return fail("prev is not the hash of the record before it");
  for (const [run_id, [first, last]] of right.runs) {
    const known = left.runs.get(run_id);
    const wanted = known === undefined ? 0 : known[1] + 1;
    if (first !== wanted) return fail(`run ${run_id}: run_seq ${first} where ${wanted} was due`);
    left.runs.set(run_id, [known?.[0] ?? first, last]);
  }
  return { ...left, records: left.records + right.records, hash: right.hash, bad: right.bad };
}
