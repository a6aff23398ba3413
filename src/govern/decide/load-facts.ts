/** Loads the facts of an intent from one consistent view of the store. */
import { invalidError } from "../../kernel/errors.ts";
import { hmacHex, keyedHash, sameSecret, sha256Hex } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { parsePath, readPath } from "../../kernel/paths.ts";
import { NO_LABELS, toolLabels } from "../../rules/manifest/labels.ts";
import type { ManifestSet, ToolManifest } from "../../rules/manifest/types.ts";
import { argsForPolicy } from "../../rules/policy/call.ts";
import type { CompiledPolicy, PolicyCall } from "../../rules/policy/compile.ts";
import { counterKeys } from "../../rules/policy/evaluate.ts";
import { nearestName } from "../../rules/schema-problems.ts";
import { undoProofOf } from "../../rules/undo-proof.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import { withCurrentApprovals } from "../approvals/count-approvals.ts";
import type { EngineCore, IntentCaller } from "../core.ts";
import { HALTS_KEY, runToolKey, slotKey, stepKey } from "../document-keys.ts";
import { comparedCalls, earlierCallKeys } from "../flows/earlier-calls.ts";
import { findNextPlannedCall, type NextPlannedCall } from "../plans/plan-progress.ts";
import type { CounterDoc } from "../port/docs.ts";
import type { DocKey, StoreTx } from "../port/store.ts";
import { loadCountedRun } from "../runs/load-run.ts";
import { countedRun, type RunDoc, type SandboxEvidence, type StepStatus } from "../runs/run.ts";
import { carriedFacts, tenantFacts } from "../traces/carried.ts";
import { tenantKeys } from "../traces/tenant-trace.ts";
import { beforeFacts, type CardRead, cardReadHash } from "./before-state.ts";
import type { DecisionFacts } from "./facts.ts";

/** Statuses of steps without an effect, or whose effect is being undone. */
const FALLEN: ReadonlySet<StepStatus> = new Set(["failed", "compensating", "compensated"]);

export interface IntentInput {
  tool: string;
  args: JsonValue;
  reason: string;
  depends_on: readonly number[];
  /** The client's own id of the call. Kept with the step alone. */
  ref?: string | undefined;
  /** Evidence that the call comes from inside `svc run`. Without a run that it proves, it counts as none. */
  sandboxed?: SandboxEvidence | undefined;
  /** Run that history proved, for simulations alone. */
  replayed_sandbox?: string | undefined;
  /** Objections of the surface against the call, such as a changed tool definition. */
  objections?: readonly string[] | undefined;
  /** True if the call is part of a drill, so that its undo needs no earlier drill. */
  drill?: boolean | undefined;
  /** Reading of the surface for the card, if the surface makes `before` reads. */
  seen?: CardRead | undefined;
  /** Input schema of the tool, if the surface knows it. The card marks members that it does not declare. */
  input_schema?: JsonValue | undefined;
}

/** Immutable facts of a run, cached by callers to determine a unit's needs before it runs. */
export type RunFacts = Pick<
  RunDoc,
  "run_id" | "principal" | "actor" | "acting" | "tenant" | "environment" | "salt" | "child_of"
>;

export interface LoadedIntent {
  facts: DecisionFacts;
  args_hash: string;
  idempotency: string | null;
  /** Plan whose next call this is, if any. */
  planned: NextPlannedCall | null;
  /** Dependencies that the caller or the plan names. */
  depends_on: readonly number[];
}

/** Keyed hash of the call's arguments, computed once even if the unit runs several times. */
type HashArgs = (salt: string) => string;

export function hashArgsOnce(args: JsonValue): HashArgs {
  let known: { salt: string; hash: string } | undefined;
  return (salt) => {
    if (known?.salt !== salt) known = { salt, hash: keyedHash(salt, args) };
    return known.hash;
  };
}

/** `step` matters only for the records of an accepted call. */
export function policyCall(
  run: RunFacts & { next_step?: number },
  tool: string,
  args: JsonValue,
  manifest: ToolManifest | null,
): PolicyCall {
  return {
    tool,
    args: argsForPolicy(tool, args),
    actor: run.actor,
    acting: run.acting ?? [],
    tenant: run.tenant,
    environment: run.environment,
    ...(manifest === null ? NO_LABELS : toolLabels(manifest)),
    run_id: run.run_id,
    ...(run.child_of === undefined ? {} : { counted_run: run.child_of.counted_run }),
    step: run.next_step ?? 0,
  };
}

/** Documents that an intent will read, for a run with known facts. */
export function intentNeeds(
  core: EngineCore,
  run: RunFacts,
  input: IntentInput,
  hashArgs: HashArgs = hashArgsOnce(input.args),
): DocKey[] {
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(input.tool) ?? null;
  const needs: DocKey[] = [
    ["runs", run.run_id],
    ["halts", HALTS_KEY],
    ["approval_slots", slotKey(run.run_id, input.tool, hashArgs(run.salt))],
    ["run_tools", runToolKey(run.run_id, input.tool)],
  ];
  for (const tool of manifest?.requires ?? []) needs.push(["run_tools", runToolKey(run.run_id, tool)]);
  for (const step of input.depends_on) needs.push(["steps", stepKey(run.run_id, step)]);
  const repeat = idempotencyKey(core.storeKey, manifest, input.args);
  if (repeat !== null) needs.push(["idempotency", repeat]);
  if (manifest !== null) needs.push(["manifests", manifests.hashOf(manifest)]);
  for (const { key } of counterKeys(policy, policyCall(run, input.tool, input.args, manifest)))
    needs.push(["counters", key]);
  if (run.child_of !== undefined) needs.push(["runs", countedRun(run)]);
  if (input.sandboxed !== undefined) needs.push(["runs", input.sandboxed.run_id]);
  if (policy.carries !== null) needs.push(["traces", countedRun(run)]);
  if (policy.carries !== null && policy.carries.within_ms !== null)
    needs.push(["tenant_traces", tenantKeys(core, run.tenant).id]);
  needs.push(...earlierCallKeys(policy, policyCall(run, input.tool, input.args, manifest)));
  if (asksForProof(policy, manifest, input)) needs.push(["drills", input.tool]);
  return needs;
}

/** Intent with its loaded run, and the values that stay equal if the unit runs again. */
interface IntentAtHand {
  run: RunDoc;
  caller: IntentCaller;
  input: IntentInput;
  fresh_approval_id: string;
  hashArgs: HashArgs;
}

export function loadIntentFacts(core: EngineCore, tx: StoreTx, intent: IntentAtHand): LoadedIntent {
  const { run, caller, input, fresh_approval_id, hashArgs } = intent;
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(input.tool) ?? null;
  const call = policyCall(run, input.tool, input.args, manifest);
  const sandboxed = input.replayed_sandbox ?? provenSandbox(tx, run, input.sandboxed);
  if (sandboxed !== undefined) call.sandboxed = sandboxed;
  if (asksForProof(policy, manifest, input))
    call.proof = undoProofOf(tx.get("drills", input.tool), manifests.hashOf(manifest));
  if (policy.carries !== null) call.carried = carriedFacts(tx, run, call, manifest);
  if (policy.carries !== null && policy.carries.within_ms !== null)
    call.shared = tenantFacts(core, tx, run, call, manifest);
  if (policy.compares)
    call.compared = comparedCalls(core, tx, policy, { call, manifest, at_ms: core.env.now() });
  const args_hash = hashArgs(run.salt);
  const { planned, early } =
    run.plans === undefined
      ? { planned: null, early: null }
      : findNextPlannedCall(tx, run, input.tool, args_hash, core.env.now());
  const depends_on = withPlanned(input.depends_on, planned);
  const slot = tx.get("approval_slots", slotKey(run.run_id, input.tool, args_hash));
  const countNow = (one: ApprovalDoc | null | undefined) =>
    one == null ? null : withCurrentApprovals(core, tx, one);
  const own = countNow(slot === undefined ? null : tx.get("approvals", slot.id));
  const ahead = countNow(planned?.request);
  const idempotency = idempotencyKey(core.storeKey, manifest, input.args);
  const facts: DecisionFacts = {
    now: core.env.now(),
    run,
    open_requests: openRequestsOf(loadCountedRun(tx, run)),
    caller,
    tool: input.tool,
    args: input.args,
    manifest,
    policy,
    call,
    halts: tx.get("halts", HALTS_KEY)?.active ?? [],
    kill_switch: core.killSwitch(),
    missing_prerequisites: missingPrerequisites(tx, run, manifest),
    fallen_dependencies: fallenDependencies(tx, run, depends_on),
    repeat_of: idempotency === null ? null : (tx.get("idempotency", idempotency) ?? null),
    counters: readCounters(tx, policy, call),
    request: ahead ?? own,
    own_request: ahead === null ? null : own,
    early_planned: early,
    fresh_approval_id,
    objections: input.objections,
    meant: manifest === null ? nearestTool(manifests, run, input.tool) : undefined,
    before: manifest?.before && beforeFacts(manifests, run, caller, manifest, input.args),
    seen_hash: cardReadHash(run.salt, manifest?.before, input.seen),
  };
  return { facts, args_hash, idempotency, planned, depends_on };
}

function withPlanned(named: readonly number[], planned: NextPlannedCall | null): readonly number[] {
  const own = planned?.depends_on ?? [];
  return own.length === 0 ? named : [...new Set([...named, ...own])];
}

/** The launcher's run, if its secret is right and it has the tenant of the call. */
function provenSandbox(
  tx: StoreTx,
  { tenant }: RunDoc,
  evidence: SandboxEvidence | undefined,
): string | undefined {
  if (evidence === undefined) return undefined;
  const launched = tx.get("runs", evidence.run_id);
  if (launched?.sandbox === undefined || launched.tenant !== tenant) return undefined;
  return sameSecret(launched.sandbox, sha256Hex(evidence.secret)) ? launched.run_id : undefined;
}

/** Of the root and all other runs of its tree. */
const openRequestsOf = ({ open_approvals, tree_open_approvals = 0 }: RunDoc): number =>
  open_approvals + tree_open_approvals;

/** Suggests only tools that the run can call, so that guessing names reveals no others. */
function nearestTool({ all }: ManifestSet, { scope }: RunDoc, word: string): string | undefined {
  const callable = all.filter(
    ({ tool, lifecycle, permission }) =>
      lifecycle !== "draft" &&
      Math.abs(tool.length - word.length) <= 2 &&
      scope.permissions.includes(permission),
  );
  return nearestName(
    word,
    callable.map(({ tool }) => tool),
  );
}

/** True only if the policy requires drills and the tool has an undo, so that other calls skip the read. */
function asksForProof(
  policy: CompiledPolicy,
  manifest: ToolManifest | null,
  { drill }: IntentInput,
): manifest is ToolManifest {
  return policy.undo !== null && manifest !== null && manifest.compensation !== null && drill !== true;
}

function missingPrerequisites(tx: StoreTx, run: RunDoc, manifest: ToolManifest | null): string[] {
  const required = manifest?.requires ?? [];
  return required.filter((tool) => (tx.get("run_tools", runToolKey(run.run_id, tool))?.standing ?? 0) === 0);
}

function fallenDependencies(tx: StoreTx, run: RunDoc, depends_on: readonly number[]): number[] {
  const fallen: number[] = [];
  for (const step of depends_on) {
    if (step >= run.next_step) {
      throw invalidError(`depends_on: ${step} is not an earlier step of this run (it has ${run.next_step})`);
    }
    const doc = tx.get("steps", stepKey(run.run_id, step));
    if (doc === undefined || FALLEN.has(doc.status)) fallen.push(step);
  }
  return fallen;
}

export function readCounters(tx: StoreTx, policy: CompiledPolicy, call: PolicyCall): Map<string, CounterDoc> {
  const counters = new Map<string, CounterDoc>();
  for (const { key } of counterKeys(policy, call)) {
    const doc = tx.get("counters", key);
    if (doc !== undefined) counters.set(key, doc);
  }
  return counters;
}

/** Identifies a logical call across runs without storing its values. Null if a value is missing. */
function idempotencyKey(storeKey: string, manifest: ToolManifest | null, args: JsonValue): string | null {
  if (manifest === null || manifest.idempotency.length === 0) return null;
  const values: JsonValue[] = [];
  for (const source of manifest.idempotency) {
    const value = readPath(parsePath(source), { args, result: undefined });
    if (value === undefined) return null;
    values.push(value);
  }
  return hmacHex(storeKey, toCanonicalJson([manifest.tool, values]));
}
