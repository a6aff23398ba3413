/**
 * Builds spans from ledger records. A step is one span from `intended` to its outcome, an undo one from `compensating`
 * to its end, and every other event is a point. All ids derive from the run id and the ledger position, so processes
 * that each see a part of a run build one trace together.
 */
import { sha256Hex } from "../kernel/hash.ts";
import type { LedgerEvent } from "../ledger/events.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { type OtlpSpan, type OtlpStatus, otlpSpan } from "./otlp.ts";

export type SpanRecord = Pick<
  LedgerRecord,
  "seq" | "ts_ms" | "event" | "hash" | "actor" | "run_id" | "step" | "tool" | "effect" | "reason" | "detail"
> & {
  /** The W3C `traceparent` of the caller. It goes into the trace but never onto the ledger. */
  traceparent?: string | undefined;
};

type Part = "step" | "undo";
interface Role {
  readonly opens?: Part;
  readonly closes?: Part;
  readonly status: OtlpStatus;
}

const POINT: Role = { status: 0 };
const BAD_POINT: Role = { status: 2 };

/** The role of each ledger event in a trace. A new event does not compile without a row here. */
const ROLES: Record<LedgerEvent, Role> = {
  blocked: POINT,
  would_block: POINT,
  approved: POINT,
  denied: POINT,
  intended: { opens: "step", status: 0 },
  succeeded: { closes: "step", status: 1 },
  failed: { closes: "step", status: 2 },
  uncertain: { closes: "step", status: 2 },
  compensating: { opens: "undo", status: 0 },
  compensated: { closes: "undo", status: 1 },
  compensation_failed: { closes: "undo", status: 2 },
  verified: POINT,
  verification_failed: BAD_POINT,
  unverified: POINT,
  purged: POINT,
  approval_expired: POINT,
  approval_escalated: POINT,
  delegated: POINT,
  delegation_revoked: POINT,
  granted: POINT,
  grant_revoked: POINT,
  plan_proposed: POINT,
  plan_approved: POINT,
  plan_denied: POINT,
  halted: POINT,
  resumed: POINT,
  key_created: POINT,
  key_changed: POINT,
  key_deleted: POINT,
  passkey_added: POINT,
  passkey_revoked: POINT,
  upstream_connected: POINT,
  upstream_revoked: POINT,
  manifest_published: POINT,
  manifest_approved: POINT,
  manifest_deprecated: POINT,
  policy_activated: POINT,
  reloaded: POINT,
  witnessed: POINT,
  probed: POINT,
  contained: POINT,
  drill_passed: POINT,
  drill_failed: BAD_POINT,
  reconciled: POINT,
  effect_missing: BAD_POINT,
};

/** Whether the event only opens a span, which a later event completes. */
export function opensSpan(event: LedgerEvent): boolean {
  return ROLES[event]?.opens !== undefined;
}

/** The GenAI semantic conventions call a step the execution of a tool. */
const EXECUTE_TOOL = "execute_tool";
const WORDS: Record<Part, string> = { step: EXECUTE_TOOL, undo: "undo" };

/** Returns the trace id: one per run. A record without a run has its own trace. */
export function traceId(record: Pick<SpanRecord, "run_id" | "hash">): string {
  const source = record.run_id === undefined ? `svc-record:${record.hash}` : `svc-run:${record.run_id}`;
  return sha256Hex(source).slice(0, 32);
}

const spanId = (...parts: (string | number)[]) => sha256Hex(`svc-span:${parts.join("\n")}`).slice(0, 16);
const stepSpanId = (record: SpanRecord) => spanId(record.run_id!, "step", record.step!);

export class SpanBuilder {
  private readonly open = new Map<string, SpanRecord>();
  private readonly maxOpen: number;

  constructor(maxOpen = 10_000) {
    this.maxOpen = maxOpen;
  }

  /**
   * Returns the spans that this record completes: none if it opens one, else one, and more if old open spans had to go.
   */
  add(record: SpanRecord): OtlpSpan[] {
    const role = ROLES[record.event] ?? POINT;
    if (record.run_id === undefined || record.step === undefined) return [point(record, role.status)];
    if (role.opens !== undefined) return this.begin(role.opens, record);
    if (role.closes === undefined) return [point(record, role.status)];
    const key = keyOf(role.closes, record);
    const start = this.open.get(key);
    if (start === undefined) return [point(record, role.status)];
    this.open.delete(key);
    return [between(role.closes, start, record, role.status)];
  }

  /** Returns all open spans as unfinished, for a shutdown. */
  takeOpen(): OtlpSpan[] {
    const spans = [...this.open].map(([key, start]) => unfinished(key, start));
    this.open.clear();
    return spans;
  }

  private begin(part: Part, record: SpanRecord): OtlpSpan[] {
    const key = keyOf(part, record);
    const given: OtlpSpan[] = [];
    const before = this.open.get(key);
    this.open.delete(key);
    // A second `compensating` without an end in between: the first worker was lost.
    if (before !== undefined) given.push(unfinished(key, before));
    this.open.set(key, record);
    if (this.open.size > this.maxOpen) {
      const [oldest, start] = this.open.entries().next().value!;
      this.open.delete(oldest);
      given.push(unfinished(oldest, start));
    }
    return given;
  }
}

const keyOf = (part: Part, record: SpanRecord) => `${part}\n${record.run_id}\n${record.step}`;
const unfinished = (key: string, start: SpanRecord) =>
  between(key.split("\n", 1)[0] as Part, start, start, 0);

function between(part: Part, start: SpanRecord, end: SpanRecord, status: OtlpStatus): OtlpSpan {
  const step = part === "step";
  return otlpSpan({
    trace_id: traceId(start),
    span_id: step ? stepSpanId(start) : spanId(start.run_id!, "undo", start.seq),
    parent_span_id: step ? undefined : stepSpanId(start),
    name: nameOf(WORDS[part], start.tool ?? end.tool),
    start_ms: start.ts_ms,
    end_ms: end.ts_ms,
    attributes: { ...attributesOf(start, end), ...(step ? toolAttributes(start, end, status) : {}) },
    status,
    links: [start.traceparent, end.traceparent],
  });
}

/** GenAI attributes of an `execute_tool` span, without arguments and results. */
function toolAttributes(start: SpanRecord, end: SpanRecord, status: OtlpStatus) {
  return {
    "gen_ai.operation.name": EXECUTE_TOOL,
    "gen_ai.tool.name": start.tool ?? end.tool,
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": `${start.run_id}/${start.step}`,
    "gen_ai.conversation.id": start.run_id,
    "gen_ai.agent.name": start.actor,
    "error.type": status === 2 ? end.event : undefined,
  };
}

function point(record: SpanRecord, status: OtlpStatus): OtlpSpan {
  const ofStep = record.run_id !== undefined && record.step !== undefined;
  return otlpSpan({
    trace_id: traceId(record),
    span_id: spanId(record.run_id ?? record.hash, "point", record.seq),
    parent_span_id: ofStep ? stepSpanId(record) : undefined,
    name: nameOf(record.event, record.tool),
    start_ms: record.ts_ms,
    end_ms: record.ts_ms,
    attributes: attributesOf(record, record),
    status,
    links: [record.traceparent],
  });
}

function nameOf(word: string, tool: string | undefined): string {
  return tool === undefined ? word : `${word} ${tool}`;
}

/** Names, ids and event names. Records contain no arguments and no results. */
function attributesOf(start: SpanRecord, end: SpanRecord) {
  return {
    "svc.run_id": start.run_id,
    "svc.step": start.step,
    "svc.tool": start.tool ?? end.tool,
    "svc.actor": start.actor,
    "svc.effect": start.effect ?? end.effect,
    "svc.event": end.event,
    "svc.reason": start.reason ?? end.reason,
    "svc.detail": end.detail ?? start.detail,
    "svc.seq.start": start.seq,
    "svc.seq.end": end.seq,
  };
}
