/** Converts the engine's events about a call into its captured document. */
import type { DecidedCall, EngineCore, FinishedCall } from "../govern/core.ts";
import { intentNeeds } from "../govern/decide/load-facts.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { ToolManifest } from "../rules/manifest/types.ts";
import { type HistoricCall, toPreviewDecision } from "../simulate/recorded-call.ts";
import { type RedactionRules, redactPart } from "./redact.ts";

export interface CaptureRules {
  ttl_ms: number;
  redact_pii: boolean;
  /** Called often while a call is prepared. Returns a promise if other work should come first. */
  pause?: () => Promise<void> | undefined;
}

/** A decided call with the ledger record of its decision. */
export interface RecordedCall {
  call: DecidedCall;
  record: LedgerRecord;
  approval_used: boolean;
}

export async function capturedCall(
  core: EngineCore,
  { call, record, approval_used }: RecordedCall,
  rules: CaptureRules,
): Promise<HistoricCall> {
  const { run, tool, decision, manifest } = call;
  const args = await redactPart("args", call.args, redactionFor(manifest, rules));
  const { needs_approval } = call;
  return {
    run_id: run.run_id,
    step: decision.decision === "block" ? null : decision.step,
    tool,
    actor: run.actor,
    ...(run.acting === undefined ? {} : { acting: run.acting }),
    tenant: run.tenant,
    environment: run.environment,
    ...(run.child_of === undefined ? {} : { counted_run: run.child_of.counted_run }),
    ...(call.sandboxed === undefined ? {} : { sandboxed: call.sandboxed }),
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
    verdict: toPreviewDecision({ decision: decision.decision, needs_approval }),
    depends_on: [...call.depends_on],
    mode: run.mode,
    approval_used,
    finished_ms: null,
    logical_call: logicalCall(core, call),
  };
}

/** Idempotency name of the call in the live engine, keyed by the store's secret. */
function logicalCall(core: EngineCore, { run, tool, args, manifest }: DecidedCall): string | null {
  if (manifest === null || manifest.idempotency.length === 0) return null;
  const needs = intentNeeds(core, run, { tool, args, reason: "", depends_on: [] });
  return needs.find(([table]) => table === "idempotency")?.[1] ?? null;
}

/** Fields that the outcome adds to a captured call. */
export type CapturedOutcome = Pick<
  HistoricCall,
  "outcome" | "result" | "has_result" | "finished_ms" | "redacted"
>;

export async function toCapturedOutcome(call: FinishedCall, rules: CaptureRules): Promise<CapturedOutcome> {
  const hasResult = call.result !== undefined;
  const result = hasResult
    ? await redactPart("result", call.result as JsonValue, redactionFor(call.manifest, rules))
    : { value: null, changed: false };
  return {
    outcome: call.status,
    result: result.value,
    has_result: hasResult,
    finished_ms: call.step.finished_ms,
    redacted: result.changed,
  };
}

function redactionFor(manifest: ToolManifest | null, { redact_pii, pause }: CaptureRules): RedactionRules {
  return { manifest, pii: redact_pii, ...(pause === undefined ? {} : { pause }) };
}
