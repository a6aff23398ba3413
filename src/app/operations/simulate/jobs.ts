/** Simulation, replay and speculation as the surfaces ask for them: the rules in force, and the captured history. */
import { capturedPages } from "../../../capture/read.ts";
import { type HeldGrants, holdGrants, NO_GRANTS } from "../../../engine/grants/hand.ts";
import { parseDuration, parseSince } from "../../../kernel/duration.ts";
import { messageOf, notFound } from "../../../kernel/errors.ts";
import { parsePath } from "../../../kernel/paths.ts";
import { toolLabels } from "../../../model/manifest/labels.ts";
import type { ManifestSet } from "../../../model/manifest/types.ts";
import type { ClaimResult } from "../../../model/policy/prove/claims.ts";
import type { PolicyDiff } from "../../../model/policy/prove/diff.ts";
import type { PolicyTestDoc } from "../../../model/policy/schema.ts";
import type { Trial, TypedCall } from "../../../model/policy/trial.ts";
import type { ReplayChange } from "../../../sandbox/changes.ts";
import type { PastCall } from "../../../sandbox/past-call.ts";
import type { ReplayReport } from "../../../sandbox/replay.ts";
import type { SimulationReport } from "../../../sandbox/simulate.ts";
import { checkPlans, type Plan, type SpeculationReport } from "../../../sandbox/speculate.ts";
import type { App } from "../../app.ts";
import { JsonText } from "../../door/operation.ts";
import { SandboxHost } from "../../sandbox/host.ts";
import type { Job, PolicyText, SandboxTask } from "../../sandbox/job.ts";
import { readSent } from "../../sandbox/reader.ts";
import type { CheckedPolicy, Labelled } from "../../sandbox/readings.ts";
import { allDrills } from "../drills/proofs.ts";

/** How far back a simulation looks unless it is told. */
export const SIMULATION_PERIOD = "7d";
/** How long a look at the history waits for the calls that were just answered to be written. */
const SETTLE_MS = 1_000;

interface SimulateInput {
  policy: PolicyText | null;
  run_id?: string | undefined;
  since?: string | undefined;
}

interface ReplayInput {
  run_id: string;
  policy: PolicyText | null;
  changes: readonly ReplayChange[];
}

interface SpeculateInput {
  plans: readonly Plan[];
  policy: PolicyText | null;
  actor: string;
}

export async function simulateHistory(
  app: App,
  input: SimulateInput,
  signal?: AbortSignal,
): Promise<JsonText<SimulationReport>> {
  await app.capture?.settle(SETTLE_MS);
  const now = app.core.env.now();
  const since_ms =
    input.since === undefined ? now - parseDuration(SIMULATION_PERIOD) : parseSince(input.since, now);
  const history = capturedPages(app.core.store, { run_id: input.run_id, since_ms, until_ms: now }, now);
  return runJob(app, { task: { kind: "simulate" }, policy: input.policy, history }, signal);
}

export async function replayRun(
  app: App,
  input: ReplayInput,
  signal?: AbortSignal,
): Promise<JsonText<ReplayReport>> {
  const { run_id, changes } = input;
  for (const { path } of changes) parsePath(path);
  await app.capture?.settle(SETTLE_MS);
  const now = app.core.env.now();
  const history = capturedPages(app.core.store, { run_id, until_ms: now }, now);
  const first = await history.next();
  if (first.done) throw notFound(noCaptures(app, run_id));
  const task = { kind: "replay" as const, run_id, changes };
  return runJob(app, { task, policy: input.policy, history: after(first.value, history) }, signal);
}

function noCaptures(app: App, run_id: string): string {
  const why = app.settings.capture.enabled ? "" : "; capture is off";
  return `run ${run_id} has no captured calls that can be replayed${why}`;
}

async function* after(first: PastCall[], rest: AsyncIterable<PastCall[]>): AsyncGenerator<PastCall[]> {
  yield first;
  yield* rest;
}

export async function speculatePlans(
  app: App,
  input: SpeculateInput,
  signal?: AbortSignal,
): Promise<JsonText<SpeculationReport>> {
  const { plans, actor, policy } = input;
  checkPlans(plans);
  const held = await heldGrants(
    app,
    plans.flatMap(({ calls }) => calls.map(({ tool }) => tool)),
    actor,
  );
  const task = { kind: "speculate" as const, plans, actor };
  return runJob(app, { task, policy, history: nothing(), held }, signal);
}

/** The grants in force for an actor's calls of these tools. */
export async function heldGrants(
  { core }: Pick<App, "core">,
  tools: Iterable<string>,
  actor: string,
): Promise<HeldGrants> {
  const { manifests } = core.rules();
  const known = [...new Set(tools)].filter((tool) => manifests.active(tool) !== undefined);
  return core.store.transact({ run: (tx) => holdGrants(core, tx, known, actor) });
}

async function* nothing(): AsyncGenerator<PastCall[]> {}

/** Validates a policy, runs the tests it carries, and compares it with the one in force by what both say. */
export function checkPolicyText(
  app: App,
  text: string,
  { diff, signal }: { diff: boolean; signal?: AbortSignal | undefined },
): Promise<CheckedPolicy> {
  const { policy, manifests } = app.core.rules();
  const active = diff ? policy.doc : null;
  const now_ms = app.core.env.now();
  return readSent({ read: "checked_policy", text, active, labels: labelsOf(manifests), now_ms }, signal);
}

/** Judges one call, as a person types it, under a policy that need not be in force. */
export function tryOnPolicy(app: App, text: string, typed: TypedCall, signal?: AbortSignal): Promise<Trial> {
  const labels = labelsOf(app.core.rules().manifests);
  return readSent({ read: "trial", text, typed, labels, now_ms: app.core.env.now() }, signal);
}

/** The policy's text with one test more. */
export function keepPolicyTest(text: string, test: PolicyTestDoc, signal?: AbortSignal): Promise<string> {
  return readSent({ read: "kept_test", text, test }, signal);
}

/** What a policy may read of each declared tool. */
export function labelsOf(manifests: ManifestSet): Labelled[] {
  const tools = new Set(manifests.all.map(({ tool }) => tool));
  return [...tools].map((tool): Labelled => [tool, toolLabels(manifests.active(tool)!)]);
}

/** What of a policy can never take effect; a policy that cannot be looked at in time says so instead. */
export async function warningsOf(app: App, text: string, signal?: AbortSignal): Promise<string[]> {
  const labels = labelsOf(app.core.rules().manifests);
  const policy = { text, file: "policy" };
  try {
    return await readSent({ read: "policy_warnings", policy, labels, now_ms: app.core.env.now() }, signal);
  } catch (error) {
    return [`its entries could not be checked for ones that never apply: ${messageOf(error)}`];
  }
}

/** Decides the claims of a policy. */
export async function proveClaims(
  app: App,
  text: string,
  file: string,
  signal?: AbortSignal,
): Promise<ClaimResult[]> {
  // Most policies claim nothing, and no thread need be troubled to say so.
  if (!text.includes("claims")) return [];
  const labels = labelsOf(app.core.rules().manifests);
  return readSent({ read: "claims", text, file, labels, now_ms: app.core.env.now() }, signal);
}

/** Every class of call that `b` decides differently from `a`, which is the policy in force where it is left out. */
export function comparePolicies(
  app: App,
  a: PolicyText | null,
  b: PolicyText,
  signal?: AbortSignal,
): Promise<PolicyDiff> {
  const { manifests, policy } = app.core.rules();
  const labels = labelsOf(manifests);
  const now_ms = app.core.env.now();
  return readSent({ read: "policy_diff", a: a ?? { doc: policy.doc }, b, labels, now_ms }, signal);
}

/** One for the process: however many ask, simulations take no more of the machine than this allows. */
const host = new SandboxHost();

interface Wanted {
  task: SandboxTask;
  policy: PolicyText | null;
  history: AsyncIterable<PastCall[]>;
  held?: HeldGrants;
}

async function runJob<T>(
  app: App,
  { task, policy, history, held = NO_GRANTS }: Wanted,
  signal?: AbortSignal,
): Promise<JsonText<T>> {
  const { core, background } = app;
  const { manifests, policy: active } = core.rules();
  const job: Job = {
    task,
    manifests: manifests.all,
    active: active.doc,
    policy,
    now_ms: core.env.now(),
    environment: core.environment,
    storeKey: core.storeKey,
    drills: await allDrills(core),
    held,
  };
  const stop = signal === undefined ? background.signal : AbortSignal.any([signal, background.signal]);
  return new JsonText(await host.run(job, history, stop));
}
