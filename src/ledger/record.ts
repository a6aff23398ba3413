/**
 * A ledger record and its bytes. The line is RFC 8785 canonical JSON; the hash covers the same bytes
 * without the `hash` member. Both come out of one pass, because every call pays for it.
 */
import { sha256Hex } from "../kernel/hash.ts";
import type { LedgerEvent } from "./events.ts";

export const GENESIS = "0".repeat(64);

/** What a unit of work asks to have recorded; the chain adds `seq`, `prev` and `hash`. */
export interface RecordDraft {
  ts_ms: number;
  event: LedgerEvent;
  actor: string;
  run_id?: string | undefined;
  run_seq?: number | undefined;
  step?: number | undefined;
  tool?: string | undefined;
  tenant?: string | undefined;
  reason?: string | undefined;
  detail?: string | undefined;
  effect?: string | undefined;
  args_hash?: string | undefined;
  before_hash?: string | undefined;
  after_hash?: string | undefined;
  result_hash?: string | undefined;
  manifest_version?: string | undefined;
  scope_seal?: string | undefined;
}

export interface LedgerRecord extends RecordDraft {
  seq: number;
  prev: string;
  hash: string;
}

/** Where the chain stands: how many records, and the hash of the last one. */
export interface Head {
  records: number;
  hash: string;
}

export const EMPTY_HEAD: Head = { records: 0, hash: GENESIS };

export interface SealedRecord {
  record: LedgerRecord;
  /** The canonical JSON of the record, without a line break. */
  line: string;
}

/** Spelled out member by member, in canonical order: a loop over names costs several times as much. */
export function sealRecord(draft: RecordDraft, { records: seq, hash: prev }: Head): SealedRecord {
  const { actor, after_hash, args_hash, before_hash, detail, effect, event } = draft;
  const { manifest_version, reason, result_hash, run_id, run_seq, scope_seal, step, tenant, tool } = draft;
  let before = `"actor":${JSON.stringify(actor)}`;
  if (after_hash !== undefined) before += `,"after_hash":${JSON.stringify(after_hash)}`;
  if (args_hash !== undefined) before += `,"args_hash":${JSON.stringify(args_hash)}`;
  if (before_hash !== undefined) before += `,"before_hash":${JSON.stringify(before_hash)}`;
  if (detail !== undefined) before += `,"detail":${JSON.stringify(detail)}`;
  if (effect !== undefined) before += `,"effect":${JSON.stringify(effect)}`;
  before += `,"event":"${event}"`;
  let after = manifest_version === undefined ? "" : `,"manifest_version":${JSON.stringify(manifest_version)}`;
  after += `,"prev":"${prev}"`;
  if (reason !== undefined) after += `,"reason":${JSON.stringify(reason)}`;
  if (result_hash !== undefined) after += `,"result_hash":${JSON.stringify(result_hash)}`;
  if (run_id !== undefined) after += `,"run_id":${JSON.stringify(run_id)}`;
  if (run_seq !== undefined) after += `,"run_seq":${run_seq}`;
  if (scope_seal !== undefined) after += `,"scope_seal":${JSON.stringify(scope_seal)}`;
  after += `,"seq":${seq}`;
  if (step !== undefined) after += `,"step":${step}`;
  if (tenant !== undefined) after += `,"tenant":${JSON.stringify(tenant)}`;
  if (tool !== undefined) after += `,"tool":${JSON.stringify(tool)}`;
  after += `,"ts_ms":${draft.ts_ms}`;
  const hash = sha256Hex(`{${before}${after}}`);
  // The draft becomes the record: nobody else has it.
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
