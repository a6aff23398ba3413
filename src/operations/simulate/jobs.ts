/** Simulation, replay and speculation for the surfaces, with the active rules and the captured history. */
import { capturedPages } from "../../capture/captured-calls.ts";
import { EMPTY_GRANT_SNAPSHOT, type GrantSnapshot, snapshotGrants } from "../../govern/grants/resolve.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { readGivenValues } from "../../govern/traces/given.ts";
import { parseDuration, parseSince } from "../../kernel/duration.ts";
import { messageOf, notFoundError } from "../../kernel/errors.ts";
import { parsePath } from "../../kernel/paths.ts";
import { toolLabels } from "../../rules/manifest/labels.ts";
import type { ManifestSet } from "../../rules/manifest/types.ts";
import type { ClaimResult } from "../../rules/policy/prove/claims.ts";
import type { PolicyDiff } from "../../rules/policy/prove/diff.ts";
import type { PolicyTestDoc } from "../../rules/policy/schema.ts";
import type { PolicyTrial, TypedCall } from "../../rules/policy/tests/policy-trial.ts";
import type { ReplayChange } from "../../simulate/changes.ts";
import type { HistoricCall } from "../../simulate/recorded-call.ts";
import type { ReplayReport } from "../../simulate/replay.ts";
import type { SimulationReport } from "../../simulate/simulate.ts";
import { checkPlans, type SpeculationReport, type SpeculativePlan } from "../../simulate/speculate.ts";
import type { ServiceApp } from "../app.ts";
import { allDrills } from "../drills/drill-results.ts";
import { JsonText } from "../pipeline/operation.ts";
import { SandboxHost } from "../worker/host.ts";
import type { PolicyText, SandboxJob, SandboxTask } from "../worker/job.ts";
import { parseSubmitted } from "../worker/parse.ts";
import type { CheckedPolicy, LabelledTool } from "../worker/parse-tasks.ts";

/** Default period of a simulation. */
export const SIMULATION_PERIOD = "7d";
/** How long a reader of the history waits until recently answered calls are written. */
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
  plans: readonly SpeculativePlan[];
  policy: PolicyText | null;
  actor: string;
}

export async function simulateHistory(
  app: ServiceApp,
  input: SimulateInput,
  signal?: AbortSignal,
): Promise<JsonText<SimulationReport>> {
  await app.capture?.settle(SETTLE_MS);
  const now = app.core.env.now();
  const since_ms =
    input.since === undefined ? now - parseDuration(SIMULATION_PERIOD) : parseSince(input.since, now);
  const history = capturedPages(app.core.store, { run_id: input.run_id, since_ms, until_ms: now }, now);
  const known = withGiven(app, input.policy, history);
  return runJob(app, { task: { kind: "simulate" }, policy: input.policy, history: known }, signal);
}

/** Adds what people gave each run to its first call, if one of the policies follows values. */
function withGiven(
  { core }: ServiceApp,
  policy: PolicyText | null,
  history: AsyncIterable<HistoricCall[]>,
): AsyncIterable<HistoricCall[]> {
  const isFollowed = core.rules().policy.carries !== null || policy?.text.includes("carries") === true;
  return isFollowed ? addingGiven(core.store, history) : history;
}

async function* addingGiven(
  store: StateStore,
  history: AsyncIterable<HistoricCall[]>,
): AsyncGenerator<HistoricCall[]> {
  const seen = new Set<string>();
  for await (const page of history) {
    const known: HistoricCall[] = [];
    for (const call of page) {
      const given = seen.has(call.run_id)
        ? undefined
        : await readGivenValues(store, call.counted_run ?? call.run_id);
      seen.add(call.run_id);
      known.push(given === undefined ? call : { ...call, given });
    }
    yield known;
  }
}

export async function replayRun(
  app: ServiceApp,
  input: ReplayInput,
  signal?: AbortSignal,
): Promise<JsonText<ReplayReport>> {
  const { run_id, changes } = input;
  for (const { path } of changes) parsePath(path);
  await app.capture?.settle(SETTLE_MS);
  const now = app.core.env.now();
  const history = capturedPages(app.core.store, { run_id, until_ms: now }, now);
  const first = await history.next();
  if (first.done) throw notFoundError(noCaptures(app, run_id));
  const task = { kind: "replay" as const, run_id, changes };
  const known = withGiven(app, input.policy, after(first.value, history));
  return runJob(app, { task, policy: input.policy, history: known }, signal);
}

function noCaptures(app: ServiceApp, run_id: string): string {
  const why = app.settings.capture.enabled ? "" : "; capture is off";
  return `run ${run_id} has no captured calls that can be replayed${why}`;
}

async function* after(
  first: HistoricCall[],
  rest: AsyncIterable<HistoricCall[]>,
): AsyncGenerator<HistoricCall[]> {
  yield first;
  yield* rest;
}

export async function speculatePlans(
  app: ServiceApp,
  input: SpeculateInput,
  signal?: AbortSignal,
): Promise<JsonText<SpeculationReport>> {
  const { plans, actor, policy } = input;
  checkPlans(plans);
  const held = await grantSnapshotFor(
    app,
    plans.flatMap(({ calls }) => calls.map(({ tool }) => tool)),
    actor,
  );
  const task = { kind: "speculate" as const, plans, actor };
  return runJob(app, { task, policy, history: nothing(), held }, signal);
}

/** Active grants for an actor's calls of these tools. */
export async function grantSnapshotFor(
  { core }: Pick<ServiceApp, "core">,
  tools: Iterable<string>,
  actor: string,
): Promise<GrantSnapshot> {
  const { manifests } = core.rules();
  const known = [...new Set(tools)].filter((tool) => manifests.active(tool) !== undefined);
  return core.store.transact({ run: (tx) => snapshotGrants(core, tx, known, actor) });
}

async function* nothing(): AsyncGenerator<HistoricCall[]> {}

/** Validates a policy, runs its tests, and compares it with the active policy. */
export function checkPolicyText(
  app: ServiceApp,
  text: string,
  { diff, signal }: { diff: boolean; signal?: AbortSignal | undefined },
): Promise<CheckedPolicy> {
  const { policy, manifests } = app.core.rules();
  const active = diff ? policy.doc : null;
  const now_ms = app.core.env.now();
  return parseSubmitted(
    { read: "checked_policy", text, active, labels: labelsOf(manifests), now_ms },
    signal,
  );
}

/** Evaluates one call, as typed by a user, under a policy that need not be active. */
export function tryOnPolicy(
  app: ServiceApp,
  text: string,
  typed: TypedCall,
  signal?: AbortSignal,
): Promise<PolicyTrial> {
  const labels = labelsOf(app.core.rules().manifests);
  return parseSubmitted({ read: "trial", text, typed, labels, now_ms: app.core.env.now() }, signal);
}

/** Returns the policy's text with one more test. */
export function keepPolicyTest(text: string, test: PolicyTestDoc, signal?: AbortSignal): Promise<string> {
  return parseSubmitted({ read: "kept_test", text, test }, signal);
}

/** Labels of each declared tool that a policy can read. */
export function labelsOf(manifests: ManifestSet): LabelledTool[] {
  const tools = new Set(manifests.all.map(({ tool }) => tool));
  return [...tools].map((tool): LabelledTool => [tool, toolLabels(manifests.active(tool)!)]);
}

/** Warnings about policy entries that can never take effect, or one warning that the check ran out of time. */
export async function warningsOf(app: ServiceApp, text: string, signal?: AbortSignal): Promise<string[]> {
  const labels = labelsOf(app.core.rules().manifests);
  const policy = { text, file: "policy" };
  try {
    return await parseSubmitted(
      { read: "policy_warnings", policy, labels, now_ms: app.core.env.now() },
      signal,
    );
  } catch (error) {
    return [`could not check for entries that never apply: ${messageOf(error)}`];
  }
}

/** Decides the claims of a policy. */
export async function proveClaims(
  app: ServiceApp,
  text: string,
  file: string,
  signal?: AbortSignal,
): Promise<ClaimResult[]> {
  // Most policies have no claims and need no thread.
  if (!text.includes("claims")) return [];
  const labels = labelsOf(app.core.rules().manifests);
  return parseSubmitted({ read: "claims", text, file, labels, now_ms: app.core.env.now() }, signal);
}

/** Every class of call that `b` decides differently from `a`. Without `a`, compares with the active policy. */
export function comparePolicies(
  app: ServiceApp,
  a: PolicyText | null,
  b: PolicyText,
  signal?: AbortSignal,
): Promise<PolicyDiff> {
  const { manifests, policy } = app.core.rules();
  const labels = labelsOf(manifests);
  const now_ms = app.core.env.now();
  return parseSubmitted({ read: "policy_diff", a: a ?? { doc: policy.doc }, b, labels, now_ms }, signal);
}

/** One host per process, so that concurrent simulations stay within its limits. */
const host = new SandboxHost();

interface Wanted {
  task: SandboxTask;
  policy: PolicyText | null;
  history: AsyncIterable<HistoricCall[]>;
  held?: GrantSnapshot;
}

async function runJob<T>(
  app: ServiceApp,
  { task, policy, history, held = EMPTY_GRANT_SNAPSHOT }: Wanted,
  signal?: AbortSignal,
): Promise<JsonText<T>> {
  const { core, background } = app;
  const { manifests, policy: active } = core.rules();
  const job: SandboxJob = {
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
