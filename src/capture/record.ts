/** From what the engine tells of a call to the document that is kept of it. */
import type { Core, DecidedCall, FinishedCall } from "../engine/core.ts";
import { intentNeeds } from "../engine/gather.ts";
import type { Json } from "../kernel/json.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Manifest } from "../model/manifest/types.ts";
import { type PastCall, rulingOf } from "../sandbox/past-call.ts";
import { type RedactionRules, redactPart } from "./redact.ts";

export interface CaptureRules {
  ttl_ms: number;
  redact_pii: boolean;
  /** Asked often while a call is prepared: a promise where other work should come first. */
  pause?: () => Promise<void> | undefined;
}

/** A decided call, and the record that its decision left on the ledger. */
export interface RecordedCall {
  call: DecidedCall;
  record: LedgerRecord;
  approval_used: boolean;
}

export async function capturedCall(
  core: Core,
  { call, record, approval_used }: RecordedCall,
  rules: CaptureRules,
): Promise<PastCall> {
  const { run, tool, decision, manifest } = call;
  const args = await redactPart("args", call.args, redactionFor(manifest, rules));
  const { needs_approval } = call;
  return {
    run_id: run.run_id,
    step: decision.decision === "block" ? null : decision.step,
    tool,
    actor: run.actor,
    tenant: run.tenant,
    environment: run.environment,
    args: args.value,
    result: null,
    has_result: false,
    decision: decision.decision,
    reasons: decision.decision === "allow" ? [] : decision.reasons,
    outcome: null,
    manifest_version: manifest?.version ?? null,
    risk_score: call.risk_score,
    captured_ms: record.ts_ms,
    expires_ms: record.ts_ms + rules.ttl_ms,
    redacted: args.changed,
    verdict: rulingOf({ decision: decision.decision, needs_approval }),
    depends_on: [...call.depends_on],
    mode: run.mode,
    approval_used,
    finished_ms: null,
    logical_call: logicalCall(core, call),
  };
}

/** The name under which the live engine knows the call, keyed by the store's own secret. */
function logicalCall(core: Core, { run, tool, args, manifest }: DecidedCall): string | null {
  if (manifest === null || manifest.idempotency.length === 0) return null;
  const needs = intentNeeds(core, run, { tool, args, reason: "", depends_on: [] });
  return needs.find(([table]) => table === "idempotency")?.[1] ?? null;
}

/** What the outcome adds to a captured call. */
export type Finish = Pick<PastCall, "outcome" | "result" | "has_result" | "finished_ms" | "redacted">;

export async function finishOf(call: FinishedCall, rules: CaptureRules): Promise<Finish> {
  const told = call.result !== undefined;
  const result = told
    ? await redactPart("result", call.result as Json, redactionFor(call.manifest, rules))
    : { value: null, changed: false };
  return {
    outcome: call.status,
    result: result.value,
    has_result: told,
    finished_ms: call.step.finished_ms,
    redacted: result.changed,
  };
}

function redactionFor(manifest: Manifest | null, { redact_pii, pause }: CaptureRules): RedactionRules {
  return { manifest, pii: redact_pii, ...(pause === undefined ? {} : { pause }) };
}
