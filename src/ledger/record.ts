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

/** Fields that sort after `hash`, in canonical order; `prev` and `seq` are always there. */
const AFTER_HASH = [
  "manifest_version",
  "prev",
  "reason",
  "result_hash",
  "run_id",
  "run_seq",
  "scope_seal",
  "seq",
  "step",
  "tenant",
  "tool",
  "ts_ms",
] as const;
const BEFORE_HASH = ["actor", "args_hash", "detail", "effect", "event"] as const;

export function sealRecord(draft: RecordDraft, head: Head): SealedRecord {
  const record: LedgerRecord = { ...draft, seq: head.records, prev: head.hash, hash: "" };
  let before = "";
  for (const name of BEFORE_HASH) {
    const value = record[name];
    if (value !== undefined) before += `${before === "" ? "" : ","}"${name}":${JSON.stringify(value)}`;
  }
  let after = "";
  for (const name of AFTER_HASH) {
    const value = record[name];
    if (value !== undefined) after += `,"${name}":${JSON.stringify(value)}`;
  }
  record.hash = sha256Hex(`{${before}${after}}`);
  return { record, line: `{${before},"hash":"${record.hash}"${after}}` };
}

const HASH_MEMBER = /,"hash":"([0-9a-f]{64})"(?=,"(?:manifest_version|prev)":)/;

/** The bytes that a canonical line's hash covers, and the hash it states; undefined where it has none. */
export function splitLine(line: string): { body: string; hash: string } | undefined {
  const match = HASH_MEMBER.exec(line);
  if (match === null) return undefined;
  return { body: line.slice(0, match.index) + line.slice(match.index + match[0].length), hash: match[1]! };
}
