/**
 * Undos that the run's own principal carries out. What it says of them is its word alone: they are recorded as
 * self-reported, prove nothing, and stop where a person must decide.
 */
import type { Core } from "../engine/core.ts";
import { haltsCovering } from "../engine/decide/halt-index.ts";
import { policyCall, readCounters } from "../engine/gather.ts";
import { HALTS_KEY } from "../engine/keys.ts";
import { conflict, forbidden } from "../kernel/errors.ts";
import { effectiveFindings } from "../model/policy/combine.ts";
import { counterKeys, evaluatePolicy } from "../model/policy/evaluate.ts";
import type { RunDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import type { UndoCall } from "./classify.ts";
import type { ReadBack } from "./readback.ts";

const SELF_REPORTED = "self-reported";

/** `principal` is whoever rolls back without the role that others need. */
export function isOwn({ principal: opened_by }: Pick<RunDoc, "principal">, principal?: string): boolean {
  return principal === opened_by;
}

export const ownDetail = (own: boolean, detail: string | undefined): string | undefined =>
  !own ? detail : detail === undefined ? SELF_REPORTED : `${detail}, ${SELF_REPORTED}`;

/** A read-back that whoever is judged by it vouches for confirms nothing; one that went against it counts. */
export function ownReadBack(own: boolean, read_back: ReadBack | null): ReadBack | null {
  return own && read_back?.as === "verified" ? { as: "unverified" } : read_back;
}

export const ownOverwrite = () =>
  forbidden(
    "overwrite: whoever opened the run cannot overwrite what was written since; ask an operator",
    "run_owner_only",
  );

/** A halted agent calls nothing any more, not even to undo. */
export function assertOwnMayGoOn(core: Core, tx: Tx, run: RunDoc, tool: string): void {
  const { actor, tenant, environment } = run;
  const halts = haltsCovering(tx.get("halts", HALTS_KEY)?.active ?? [], { tool, actor, tenant, environment });
  const reason = core.killSwitch() ?? halts[0]?.reason;
  if (reason !== undefined)
    throw conflict("agent_halted", `kill switch: ${reason}; an operator can roll the run back`);
}

/** Why the policy would deny the agent this very call, with a flow that its own steps set off among the causes. */
export function ownDenial(core: Core, tx: Tx, run: RunDoc, { tool, args }: UndoCall): string | null {
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
