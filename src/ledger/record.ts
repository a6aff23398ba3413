/**
 * A ledger record and its bytes. The line is RFC 8785 canonical JSON; the hash covers the same bytes without the `hash`
 * member. One pass produces both, because this runs on every call.
 */
import { sha256Hex } from "../kernel/hash.ts";
import { quoteJsonString } from "../kernel/json/canonical.ts";
import type { LedgerEvent } from "./events.ts";

export const GENESIS_HASH = "0".repeat(64);

/**
 * All fields of a record, in canonical order, with their kinds. Readers reject a `count` that is not a number and a
 * `text` that is not a string. A `word` is written as text, but a later version can store another value there.
 */
export const RECORD_FIELDS = {
  actor: "text",
  after_hash: "word",
  args_hash: "word",
  before_hash: "word",
  detail: "word",
  effect: "word",
  event: "text",
  hash: "word",
  manifest_version: "word",
  prev: "word",
  reason: "word",
  result_hash: "word",
  run_id: "text",
  run_seq: "count",
  scope_seal: "word",
  seq: "count",
  step: "count",
  tenant: "word",
  tool: "text",
  ts_ms: "count",
} as const;

export type RecordField = keyof typeof RECORD_FIELDS;

/** Returns the fields of one kind, in canonical order. */
export function recordFieldsOfKind(kind: (typeof RECORD_FIELDS)[RecordField]): RecordField[] {
  return (Object.keys(RECORD_FIELDS) as RecordField[]).filter((name) => RECORD_FIELDS[name] === kind);
}

type Values = { [N in RecordField]: (typeof RECORD_FIELDS)[N] extends "count" ? number : string };
type Needed = "ts_ms" | "actor";
type Chained = "seq" | "prev" | "hash";

/** A record as a unit of work appends it. The chain adds `seq`, `prev` and `hash`. */
export type RecordDraft = Pick<Values, Needed> & { event: LedgerEvent } & {
  [N in Exclude<RecordField, Needed | Chained | "event">]?: Values[N] | undefined;
};

export type LedgerRecord = RecordDraft & Pick<Values, Chained>;

/** The end of the chain: the number of records and the hash of the last one. */
export interface LedgerHead {
  records: number;
  hash: string;
}

export const EMPTY_HEAD: LedgerHead = { records: 0, hash: GENESIS_HASH };

interface SealedRecord {
  record: LedgerRecord;
  /** The canonical JSON of the record, without a line break. */
  line: string;
}

/** Writes each member explicitly, in canonical order. A loop over the names costs several times as much. */
export function sealRecord(draft: RecordDraft, { records: seq, hash: prev }: LedgerHead): SealedRecord {
  // A text cut inside a surrogate pair would make the record unverifiable for every strict reader.
  if (draft.detail?.isWellFormed() === false) draft.detail = draft.detail.toWellFormed();
  if (draft.reason?.isWellFormed() === false) draft.reason = draft.reason.toWellFormed();
  const { actor, after_hash, args_hash, before_hash, detail, effect, event } = draft;
  const { manifest_version, reason, result_hash, run_id, run_seq, scope_seal, step, tenant, tool } = draft;
  let before = `"actor":${quoteJsonString(actor)}`;
  if (after_hash !== undefined) before += `,"after_hash":${quoteJsonString(after_hash)}`;
  if (args_hash !== undefined) before += `,"args_hash":${quoteJsonString(args_hash)}`;
  if (before_hash !== undefined) before += `,"before_hash":${quoteJsonString(before_hash)}`;
  if (detail !== undefined) before += `,"detail":${quoteJsonString(detail)}`;
  if (effect !== undefined) before += `,"effect":${quoteJsonString(effect)}`;
  before += `,"event":"${event}"`;
  let after =
    manifest_version === undefined ? "" : `,"manifest_version":${quoteJsonString(manifest_version)}`;
  after += `,"prev":"${prev}"`;
  if (reason !== undefined) after += `,"reason":${quoteJsonString(reason)}`;
  if (result_hash !== undefined) after += `,"result_hash":${quoteJsonString(result_hash)}`;
  if (run_id !== undefined) after += `,"run_id":${quoteJsonString(run_id)}`;
  if (run_seq !== undefined) after += `,"run_seq":${run_seq}`;
  if (scope_seal !== undefined) after += `,"scope_seal":${quoteJsonString(scope_seal)}`;
  after += `,"seq":${seq}`;
  if (step !== undefined) after += `,"step":${step}`;
  if (tenant !== undefined) after += `,"tenant":${quoteJsonString(tenant)}`;
  if (tool !== undefined) after += `,"tool":${quoteJsonString(tool)}`;
  after += `,"ts_ms":${draft.ts_ms}`;
  const hash = sha256Hex(`{${before}${after}}`);
  // The draft has no other use, so it becomes the record without a copy.
  const record = draft as LedgerRecord;
  record.seq = seq;
  record.prev = prev;
  record.hash = hash;
  return { record, line: `{${before},"hash":"${hash}"${after}}` };
}

const HASH_MEMBER = /,"hash":"([0-9a-f]{64})"(?=,"(?:manifest_version|prev)":)/;

/**
 * Splits a canonical line into the bytes that its hash covers and the stated hash. Returns undefined if the line has no
 * hash.
 */
export function splitLine(line: string): { body: string; hash: string } | undefined {
  const match = HASH_MEMBER.exec(line);
  if (match === null) return undefined;
  return { body: line.slice(0, match.index) + line.slice(match.index + match[0].length), hash: match[1]! };
}
