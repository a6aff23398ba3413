/** Gathering the facts of an intent from one consistent view of the store. */
import { canonical } from "../kernel/canonical.ts";
import { invalid } from "../kernel/errors.ts";
import { hmacHex, keyedHash } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import { parsePath, readPath } from "../kernel/paths.ts";
import type { ApprovalDoc } from "../model/approval.ts";
import { NO_LABELS, toolLabels } from "../model/manifest/labels.ts";
import type { Manifest, ManifestSet } from "../model/manifest/types.ts";
import type { Policy, PolicyCall } from "../model/policy/compile.ts";
import { counterKeys } from "../model/policy/evaluate.ts";
import { nearestName } from "../model/problems.ts";
import { proofOf } from "../model/proof.ts";
import type { RunDoc, StepStatus } from "../model/run.ts";
import type { CounterDoc } from "../port/docs.ts";
import type { Key, Tx } from "../port/store.ts";
import { asGivenNow } from "./approvals/counting.ts";
import { beforeFacts, type Seen, seenHash } from "./before.ts";
import type { Core, IntentCaller } from "./core.ts";
import type { Facts } from "./decide/facts.ts";
import { HALTS_KEY, runToolKey, slotKey, stepKey } from "./keys.ts";
import { type PlannedNow, plannedNow } from "./plans/order.ts";

/** A step that has no effect to build on, or whose effect is being taken back. */
const FALLEN: ReadonlySet<StepStatus> = new Set(["failed", "compensating", "compensated"]);

export interface IntentInput {
  tool: string;
  args: Json;
  reason: string;
  depends_on: readonly number[];
  /** What the surface itself holds against the call, such as a tool definition that changed. */
  objections?: readonly string[] | undefined;
  /** The call is itself the proof of its undo, and needs none. */
  drill?: boolean | undefined;
  /** What the surface read for the card, where it reads what a manifest's `before` names. */
  seen?: Seen | undefined;
  /** The input schema of the tool, where the surface knows it: the card points out members that it does not declare. */
  input_schema?: Json | undefined;
}

/** The parts of a run that never change; kept by callers to name a unit's needs before it runs. */
export type RunFacts = Pick<RunDoc, "run_id" | "principal" | "actor" | "tenant" | "environment" | "salt">;

export interface Gathered {
  facts: Facts;
  args_hash: string;
  idempotency: string | null;
  /** The plan whose turn this call is, where there is one. */
  planned: PlannedNow | null;
}

/** The keyed hash of the call's arguments, computed once however often the unit is run. */
type HashArgs = (salt: string) => string;

export function hashArgsOnce(args: Json): HashArgs {
  let known: { salt: string; hash: string } | undefined;
  return (salt) => {
    if (known?.salt !== salt) known = { salt, hash: keyedHash(salt, args) };
    return known.hash;
  };
}

/** The step matters to what is recorded of an accepted call, not to what is asked for beforehand. */
export function policyCall(
  run: RunFacts & { next_step?: number },
  tool: string,
  args: Json,
  manifest: Manifest | null,
): PolicyCall {
  return {
    tool,
    args,
    actor: run.actor,
    tenant: run.tenant,
    environment: run.environment,
    ...(manifest === null ? NO_LABELS : toolLabels(manifest)),
    run_id: run.run_id,
    step: run.next_step ?? 0,
  };
}

/** The documents an intent will read, for a run whose unchanging facts are known. */
export function intentNeeds(
  core: Core,
  run: RunFacts,
  input: IntentInput,
  hashArgs: HashArgs = hashArgsOnce(input.args),
): Key[] {
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(input.tool) ?? null;
  const needs: Key[] = [
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
  if (asksForProof(policy, manifest, input)) needs.push(["drills", input.tool]);
  return needs;
}

/** An intent whose run is at hand, with what must stay the same however often the unit is run. */
interface IntentAtHand {
  run: RunDoc;
  caller: IntentCaller;
  input: IntentInput;
  fresh_approval_id: string;
  hashArgs: HashArgs;
}

export function gather(core: Core, tx: Tx, intent: IntentAtHand): Gathered {
  const { run, caller, input, fresh_approval_id, hashArgs } = intent;
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(input.tool) ?? null;
  const call = policyCall(run, input.tool, input.args, manifest);
  if (asksForProof(policy, manifest, input))
    call.proof = proofOf(tx.get("drills", input.tool), manifests.hashOf(manifest));
  const args_hash = hashArgs(run.salt);
  const planned = run.plans === undefined ? null : plannedNow(tx, run, input.tool, args_hash, core.env.now());
  const slot = tx.get("approval_slots", slotKey(run.run_id, input.tool, args_hash));
  const countNow = (one: ApprovalDoc | null | undefined) => (one == null ? null : asGivenNow(core, tx, one));
  const own = countNow(slot === undefined ? null : tx.get("approvals", slot.id));
  const ahead = countNow(planned?.request);
  const idempotency = idempotencyKey(core.storeKey, manifest, input.args);
  const facts: Facts = {
    now: core.env.now(),
    run,
    caller,
    tool: input.tool,
    args: input.args,
    manifest,
    policy,
    call,
    halts: tx.get("halts", HALTS_KEY)?.active ?? [],
    kill_switch: core.killSwitch(),
    missing_prerequisites: missingPrerequisites(tx, run, manifest),
    fallen_dependencies: fallenDependencies(tx, run, input.depends_on),
    repeat_of: idempotency === null ? null : (tx.get("idempotency", idempotency) ?? null),
    counters: readCounters(tx, policy, call),
    request: ahead ?? own,
    beside: ahead === null ? null : own,
    fresh_approval_id,
    objections: input.objections,
    meant: manifest === null ? nearestTool(manifests, run, input.tool) : undefined,
    before: manifest?.before && beforeFacts(manifests, run, caller, manifest, input.args),
    seen_hash: seenHash(run.salt, manifest?.before, input.seen),
  };
  return { facts, args_hash, idempotency, planned };
}

/** Of the tools that the run may call: what else is declared is not told to whoever guesses names. */
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

/** Only where the policy asks, and there is an undo: no other call pays for the look. */
function asksForProof(
  policy: Policy,
  manifest: Manifest | null,
  { drill }: IntentInput,
): manifest is Manifest {
  return policy.undo !== null && manifest !== null && manifest.compensation !== null && drill !== true;
}

function missingPrerequisites(tx: Tx, run: RunDoc, manifest: Manifest | null): string[] {
  const required = manifest?.requires ?? [];
  return required.filter((tool) => (tx.get("run_tools", runToolKey(run.run_id, tool))?.standing ?? 0) === 0);
}

function fallenDependencies(tx: Tx, run: RunDoc, depends_on: readonly number[]): number[] {
  const fallen: number[] = [];
  for (const step of depends_on) {
    if (step >= run.next_step) {
      throw invalid(`depends_on: ${step} is not an earlier step of this run (it has ${run.next_step})`);
    }
    const doc = tx.get("steps", stepKey(run.run_id, step));
    if (doc === undefined || FALLEN.has(doc.status)) fallen.push(step);
  }
  return fallen;
}

export function readCounters(tx: Tx, policy: Policy, call: PolicyCall): Map<string, CounterDoc> {
  const counters = new Map<string, CounterDoc>();
  for (const { key } of counterKeys(policy, call)) {
    const doc = tx.get("counters", key);
    if (doc !== undefined) counters.set(key, doc);
  }
  return counters;
}

/** Names a logical call across runs without keeping its values. A missing value names none. */
function idempotencyKey(storeKey: string, manifest: Manifest | null, args: Json): string | null {
  if (manifest === null || manifest.idempotency.length === 0) return null;
  const values: Json[] = [];
  for (const source of manifest.idempotency) {
    const value = readPath(parsePath(source), { args, result: undefined });
    if (value === undefined) return null;
    values.push(value);
  }
  return hmacHex(storeKey, canonical([manifest.tool, values]));
}
