/**
 * Formats a ledger record for other systems: unchanged, as CEF, or as an OCSF event. No format adds or omits a fact.
 */
import type { ExportFormat } from "../../config/sections/operations.ts";
import { isLedgerEvent, LEDGER_EVENTS, type LedgerEvent } from "../../ledger/events.ts";
import { type LedgerRecord, splitLine } from "../../ledger/record.ts";

export interface StreamRecord {
  /** The canonical line, without a line break. */
  line: string;
  record: LedgerRecord;
}

/** OCSF severities: 1 informational, 2 low, 3 medium, 4 high. */
type Severity = 1 | 2 | 3 | 4;
/** OCSF statuses: 1 success, 2 failure, 0 for an event that is neither. */
type Status = 0 | 1 | 2;

/** Severity of each event, and whether it means success or failure. */
const GRADES: Readonly<Record<LedgerEvent, readonly [severity: Severity, status: Status]>> = {
  blocked: [2, 2],
  would_block: [2, 0],
  approved: [1, 1],
  denied: [3, 2],
  intended: [1, 1],
  succeeded: [1, 1],
  failed: [2, 2],
  uncertain: [3, 0],
  compensating: [1, 0],
  compensated: [1, 1],
  compensation_failed: [3, 2],
  verified: [1, 1],
  verification_failed: [3, 2],
  unverified: [2, 0],
  purged: [2, 0],
  approval_expired: [2, 0],
  approval_escalated: [2, 0],
  delegated: [2, 0],
  delegation_revoked: [1, 0],
  granted: [2, 0],
  grant_revoked: [1, 0],
  plan_proposed: [1, 0],
  plan_approved: [1, 1],
  plan_denied: [3, 2],
  halted: [4, 0],
  resumed: [3, 0],
  key_created: [2, 0],
  key_changed: [2, 0],
  key_deleted: [2, 0],
  passkey_added: [2, 0],
  passkey_revoked: [2, 0],
  upstream_connected: [2, 0],
  upstream_revoked: [2, 0],
  manifest_published: [1, 0],
  manifest_approved: [2, 0],
  manifest_deprecated: [1, 0],
  policy_activated: [2, 0],
  reloaded: [2, 0],
  witnessed: [1, 0],
  probed: [1, 0],
  contained: [4, 0],
  drill_passed: [1, 1],
  drill_failed: [3, 2],
  reconciled: [2, 0],
  effect_missing: [4, 2],
};
/** Grade of events from a newer version. Their meaning is unknown, so they are not graded informational. */
const UNKNOWN_GRADE: readonly [severity: Severity, status: Status] = [3, 0];

const gradeOf = (event: string) => (isLedgerEvent(event) ? GRADES[event] : UNKNOWN_GRADE);

export function severityOf(event: string): Severity {
  return gradeOf(event)[0];
}

function statusOf(event: string): Status {
  return gradeOf(event)[1];
}

const wordsOf = (event: string): string => (isLedgerEvent(event) ? LEDGER_EVENTS[event] : event);

export function writeRecord(one: StreamRecord, format: ExportFormat, version: string): string {
  if (format === "jsonl") return one.line;
  return format === "cef" ? toCef(one.record, version) : JSON.stringify(toOcsf(one, version));
}

const header = (text: string): string => text.replace(/[\\|]/g, "\\$&").replace(/[\r\n]+/g, " ");
const value = (text: string): string =>
  text.replace(/[\\=]/g, "\\$&").replaceAll("\r", "\\r").replaceAll("\n", "\\n");

const CEF_OUTCOMES: Readonly<Record<Status, string | undefined>> = {
  0: undefined,
  1: "success",
  2: "failure",
};

/** ArcSight Common Event Format, version 0. */
function toCef(record: LedgerRecord, version: string): string {
  const { seq, ts_ms, event, actor, tool, run_id, step, tenant, detail, reason, hash } = record;
  const fields: [string, string | number | undefined][] = [
    ["externalId", seq],
    ["rt", ts_ms],
    ["suser", actor],
    ["act", event],
    ["request", tool],
    ["outcome", CEF_OUTCOMES[statusOf(event)]],
    ["reason", reason],
    ["msg", detail],
    ["cn1Label", step === undefined ? undefined : "step"],
    ["cn1", step],
    ["cs1Label", run_id === undefined ? undefined : "run_id"],
    ["cs1", run_id],
    ["cs2Label", tenant === undefined ? undefined : "tenant"],
    ["cs2", tenant],
    ["cs3Label", "hash"],
    ["cs3", hash],
    ["cs4Label", "prev"],
    ["cs4", record.prev],
  ];
  const extension = fields
    .filter(([, one]) => one !== undefined)
    .map(([name, one]) => `${name}=${value(String(one))}`)
    .join(" ");
  // CEF severities go up to 10.
  const severity = severityOf(event) * 2;
  return `CEF:0|takeback|svc|${header(version)}|${header(event)}|${header(wordsOf(event))}|${severity}|${extension}`;
}

const OCSF_VERSION = "1.6.0";
const API_ACTIVITY = 6_003;
const READ = 2;
const OTHER = 99;
const SHA_256 = 3;

/**
 * OCSF API Activity. `raw_data` is exactly the hashed content of the record, `prev` included, so the receiver can
 * verify the chain.
 */
function toOcsf({ line, record }: StreamRecord, version: string): object {
  const { seq, ts_ms, event, actor, tool, run_id, tenant, detail, hash, effect } = record;
  const activity_id = effect === "read" ? READ : OTHER;
  const { seq: _seq, ts_ms: _time, event: _event, actor: _actor, prev: _prev, hash: _hash, ...rest } = record;
  return {
    activity_id,
    ...(activity_id === OTHER ? { activity_name: event } : {}),
    category_uid: 6,
    class_uid: API_ACTIVITY,
    type_uid: API_ACTIVITY * 100 + activity_id,
    time: ts_ms,
    severity_id: severityOf(event),
    status_id: statusOf(event),
    ...(detail === undefined ? {} : { status_detail: detail }),
    message: [wordsOf(event), tool].filter((part) => part !== undefined).join(": "),
    metadata: {
      version: OCSF_VERSION,
      product: { name: "svc", vendor_name: "takeback", version },
      log_name: "ledger",
      event_code: event,
      sequence: seq,
      uid: hash,
      ...(run_id === undefined ? {} : { correlation_uid: run_id }),
      ...(tenant === undefined ? {} : { tenant_uid: tenant }),
    },
    actor: { user: { name: actor } },
    api: { operation: tool ?? event, service: { name: "svc" } },
    src_endpoint: { svc_name: "svc" },
    raw_data: splitLine(line)?.body ?? line,
    raw_data_hash: { algorithm_id: SHA_256, value: hash },
    unmapped: rest,
  };
}
