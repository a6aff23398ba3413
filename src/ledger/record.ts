/**
 * A ledger record and its bytes. The line is RFC 8785 canonical JSON; the hash covers the same bytes
 * without the `hash` member. Both come out of one pass, because every call pays for it.
 */
import { quoted } from "../kernel/canonical.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { LedgerEvent } from "./events.ts";

export const GENESIS = "0".repeat(64);

/**
 * Every field of a record, in canonical order, and what it holds: a count, a text, or a word. Readers refuse a count or a
 * text that is something else; a word is written as text, and a later version may hold another value there.
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

/** Fields of a kind, in canonical order. */
export function fieldsOf(kind: (typeof RECORD_FIELDS)[RecordField]): RecordField[] {
  return (Object.keys(RECORD_FIELDS) as RecordField[]).filter((name) => RECORD_FIELDS[name] === kind);
}

type Values = { [N in RecordField]: (typeof RECORD_FIELDS)[N] extends "count" ? number : string };
type Needed = "ts_ms" | "actor";
type Chained = "seq" | "prev" | "hash";

/** What a unit of work asks to have recorded; the chain adds `seq`, `prev` and `hash`. */
export type RecordDraft = Pick<Values, Needed> & { event: LedgerEvent } & {
  [N in Exclude<RecordField, Needed | Chained | "event">]?: Values[N] | undefined;
};

export type LedgerRecord = RecordDraft & Pick<Values, Chained>;

/** Where the chain stands: how many records, and the hash of the last one. */
export interface Head {
  records: number;
  hash: string;
}

export const EMPTY_HEAD: Head = { records: 0, hash: GENESIS };

interface SealedRecord {
  record: LedgerRecord;
  /** The canonical JSON of the record, without a line break. */
  line: string;
}

/** Spelled out member by member, in canonical order: a loop over names costs several times as much. */
export function sealRecord(draft: RecordDraft, { records: seq, hash: prev }: Head): SealedRecord {
  // Whoever cut a text within a character: a record with half of one could be verified by no strict reader, for ever.
  if (draft.detail?.isWellFormed() === false) draft.detail = draft.detail.toWellFormed();
  if (draft.reason?.isWellFormed() === false) draft.reason = draft.reason.toWellFormed();
  const { actor, after_hash, args_hash, before_hash, detail, effect, event } = draft;
  const { manifest_version, reason, result_hash, run_id, run_seq, scope_seal, step, tenant, tool } = draft;
  let before = `"actor":${quoted(actor)}`;
  if (after_hash !== undefined) before += `,"after_hash":${quoted(after_hash)}`;
  if (args_hash !== undefined) before += `,"args_hash":${quoted(args_hash)}`;
  if (before_hash !== undefined) before += `,"before_hash":${quoted(before_hash)}`;
  if (detail !== undefined) before += `,"detail":${quoted(detail)}`;
  if (effect !== undefined) before += `,"effect":${quoted(effect)}`;
  before += `,"event":"${event}"`;
  let after = manifest_version === undefined ? "" : `,"manifest_version":${quoted(manifest_version)}`;
  after += `,"prev":"${prev}"`;
  if (reason !== undefined) after += `,"reason":${quoted(reason)}`;
  if (result_hash !== undefined) after += `,"result_hash":${quoted(result_hash)}`;
  if (run_id !== undefined) after += `,"run_id":${quoted(run_id)}`;
  if (run_seq !== undefined) after += `,"run_seq":${run_seq}`;
  if (scope_seal !== undefined) after += `,"scope_seal":${quoted(scope_seal)}`;
  after += `,"seq":${seq}`;
  if (step !== undefined) after += `,"step":${step}`;
  if (tenant !== undefined) after += `,"tenant":${quoted(tenant)}`;
  if (tool !== undefined) after += `,"tool":${quoted(tool)}`;
  after += `,"ts_ms":${draft.ts_ms}`;
  const hash = sha256Hex(`{${before}${after}}`);
  // The draft becomes the record: it was made for this alone.
  const record = draft as LedgerRecord;
  record.seq = seq;
  record.prev = prev;
  record.hash = hash;
  return { record, line: `{${before},"hash":"${hash}"${after}}` };
}

const HASH_MEMBER = /,"hash":"([0-9a-f]{64})"(?=,"(?:manifest_version|prev)":)/;

/** The bytes that a canonical line's hash covers, and the hash it states; undefined where it has none. */
export function splitLine(line: string): { body: string; hash: string } | undefined {
  const match = HASH_MEMBER.exec(line);
  if (match === null) return undefined;
  return { body: line.slice(0, match.index) + line.slice(match.index + match[0].length), hash: match[1]! };
}
