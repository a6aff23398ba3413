/**
 * Undos that the run's own principal carries out. The service cannot check its statements: they are recorded as
 * self-reported, verify nothing, and stop at every step that needs an approver or operator.
 */
import type { EngineCore } from "../../govern/core.ts";
import { policyCall, readCounters } from "../../govern/decide/load-facts.ts";
import { HALTS_KEY } from "../../govern/document-keys.ts";
import { haltsCovering } from "../../govern/halts/halt-index.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { conflictError, forbiddenError } from "../../kernel/errors.ts";
import { effectiveFindings } from "../../rules/policy/combine.ts";
import { counterKeys, evaluatePolicy } from "../../rules/policy/evaluate.ts";
import type { UndoCall } from "../plan/classify.ts";
import type { ReadBack } from "./readback.ts";

const SELF_REPORTED = "self-reported";

/** `principal` is set for a caller without the role that others need to roll back. */
export function isSelfRollback(
  { principal: opened_by }: Pick<RunDoc, "principal">,
  principal?: string,
): boolean {
  return principal === opened_by;
}

export const selfReportedDetail = (own: boolean, detail: string | undefined): string | undefined =>
  !own ? detail : detail === undefined ? SELF_REPORTED : `${detail}, ${SELF_REPORTED}`;

/** An agent cannot confirm its own undo, so its successful verification counts as none. A failed one counts. */
export function selfReportedReadBack(own: boolean, read_back: ReadBack | null): ReadBack | null {
  return own && read_back?.as === "verified" ? { as: "unverified" } : read_back;
}

export const selfOverwriteError = () =>
  forbiddenError(
    "overwrite: the run's own principal cannot overwrite later changes; ask an operator",
    "run_owner_only",
  );

/** A halted agent cannot call any tool, not even to undo. */
export function assertSelfRollbackAllowed(core: EngineCore, tx: StoreTx, run: RunDoc, tool: string): void {
  const { actor, tenant, environment } = run;
  const halts = haltsCovering(tx.get("halts", HALTS_KEY)?.active ?? [], { tool, actor, tenant, environment });
  const reason = core.killSwitch() ?? halts[0]?.reason;
  if (reason !== undefined)
    throw conflictError("agent_halted", `kill switch: ${reason}; an operator can roll the run back`);
}

/** Why the policy would deny the agent this exact call, including data flows from its own steps. */
export function selfRollbackDenial(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  { tool, args }: UndoCall,
): string | null {
  if (run.mode !== "enforce") return null;
  const { manifests, policy } = core.rules();
  const call = policyCall(run, tool, args, manifests.active(tool) ?? null);
  tx.expect(counterKeys(policy, call).map(({ key }) => ["counters", key]));
  const { findings } = evaluatePolicy(policy, call, core.env.now(), readCounters(tx, policy, call));
  const denials = effectiveFindings(findings).filter(({ action }) => action === "deny");
  if (denials.length === 0) return null;
  const reasons = denials.map(({ reason }) => reason).join("; ");
  return `the policy denies ${tool} to this agent: ${reasons}; an operator can roll the run back`;
}
