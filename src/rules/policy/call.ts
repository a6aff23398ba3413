/** Input of a policy decision. It contains all data that a policy reads; evaluation fetches nothing. */
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import type { TraceKind } from "../trace/fingerprint-map.ts";
import type { UndoProof } from "../undo-proof.ts";
import type { ComparedCalls } from "./checks/compared-calls.ts";

/**
 * The arguments of a call as every condition of a policy or a grant reads them. A push with `force: unknown` may
 * drop commits, so it counts as forced.
 */
export function argsForPolicy(tool: string, args: JsonValue): JsonValue {
  if (tool !== "git.push" || !isJsonObject(args) || args["force"] !== "unknown") return args;
  return { ...args, force: true };
}

export interface PolicyCall {
  tool: string;
  /** The arguments as conditions read them: see {@link argsForPolicy}. */
  args: JsonValue;
  actor: string;
  /** Those who act for the actor, outermost first; absent if it acts itself. */
  acting?: readonly string[] | undefined;
  tenant: string | null;
  environment: string | null;
  /** From the tool's manifest; null if it is missing or does not declare this. */
  effect: string | null;
  data_class: string | null;
  blast_radius: string | null;
  /** Labels of the data's origin, from the manifest; `sink` has those of its destination. */
  source: readonly string[];
  sink: readonly string[];
  /** Drill result of the undo; absent if the policy does not need it or the tool has no undo. */
  proof?: UndoProof | undefined;
  /** Run of the confined command that makes the call, by the launcher's evidence; absent outside of `svc run`. */
  sandboxed?: string | undefined;
  /** Foreign values in the arguments; absent unless a flow with `carries` restricts the call. */
  carried?: CarriedFacts | undefined;
  /** Foreign values of all runs of the tenant; absent unless such a flow looks back further than the run. */
  shared?: CarriedFacts | undefined;
  /** Earlier calls by flow; absent unless a flow that compares calls restricts the call. */
  compared?: ReadonlyMap<string, ComparedCalls> | undefined;
  /** For the prover, which knows no earlier calls: the flows with `carries` or `when` that apply to this call. */
  assumed_flows?: ReadonlySet<string> | undefined;
  run_id: string;
  /** Root of the run's tree, if it is a child run. What a policy counts per run counts there. */
  counted_run?: string | undefined;
  /** Number of the step if the call is accepted. */
  step: number;
}

/** An earlier call. `call` is what a flow's `after` matches. */
export interface CarriedOrigin {
  /** When the result was reported; absent for calls that count without a limit of time. */
  at_ms?: number | undefined;
  /** Why its values can no longer be distinguished, although its result is known. */
  lost?: string | undefined;
  run_id: string;
  step: number;
  tool: string;
  call: PolicyCall;
}

/** A value of the arguments that came from the result of an earlier call. Never holds the value. */
export interface CarriedValue {
  /** Path such as `$args.to`. */
  path: string;
  kind: TraceKind;
  from: CarriedOrigin;
}

export interface CarriedFacts {
  values: readonly CarriedValue[];
  /** Calls whose result is not known. Every value counts as theirs. */
  open: readonly CarriedOrigin[];
  /** Why the run can no longer distinguish its values; every value then counts as carried. Null if it can. */
  lost: string | null;
  /** Time of the newest call with an unknown result that has left the list. */
  dropped_ms?: number | undefined;
}
