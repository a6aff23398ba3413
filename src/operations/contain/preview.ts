/** Previews a containment: keys, requests, authority and runs of the matching actors. Changes nothing. */

import type { KeyView } from "../../auth/key-manager.ts";
import { approvalTags } from "../../govern/approvals/approval.ts";
import type { EngineCore } from "../../govern/core.ts";
import { stepKey } from "../../govern/document-keys.ts";
import { isExpired } from "../../govern/expiry.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { messageOf } from "../../kernel/errors.ts";
import { type DependentStep, findDependents } from "../../rollback/cascade/dependents.ts";
import type { JobTools } from "../../rollback/job.ts";
import { needsUndo } from "../../rollback/plan/classify.ts";
import { readStates, type StateReader } from "../../rollback/plan/current-state.ts";
import { type LoadedRun, loadForRollback } from "../../rollback/plan/load-run.ts";
import { ledgerPlace } from "../../rollback/plan/multi-run.ts";
import { type CompensateAction, planTogether } from "../../rollback/plan/plan.ts";
import { isUndoApproved } from "../../rollback/undo/undo-approval.ts";
import type { ServiceApp } from "../app.ts";
import { isKeyShown } from "../pipeline/access.ts";
import { stateReaderFor } from "../rollback/state-reader.ts";
import { REVOCABLE_AUTHORITY, type WiderAuthority } from "./authority.ts";
import {
  type ContainReport,
  NO_SIGNING_KEY,
  predictedLeftovers,
  type RunContainment,
  skipReason,
  type UndoProspect,
  withTotals,
} from "./report.ts";
import { type ContainmentScope, isInScope, type RunInScope, runsInScope, type ScopeMatch } from "./scope.ts";

interface KeysFound {
  /** Enabled keys whose only role is agent. */
  disable: KeyView[];
  left: { name: string; fingerprint: string; why: string }[];
  note: string | null;
}

/** Finds the matching actors' keys. A key with a further role is listed but not disabled: people work with it. */
export async function findKeys(
  app: Pick<ServiceApp, "core" | "keys">,
  scope: ContainmentScope,
): Promise<KeysFound> {
  const { keys } = app;
  if (keys === null)
    return {
      disable: [],
      left: [],
      note: "no key file is configured here; the halt blocks every credential",
    };
  let entries: KeyView[];
  try {
    entries = await keys.list();
  } catch (error) {
    return { disable: [], left: [], note: `the key file could not be read: ${messageOf(error)}` };
  }
  const enabled = entries.filter(
    (one) =>
      !one.disabled && isKeyShown(app, one) && isInScope(scope, { actor: one.name, tenant: one.tenant }),
  );
  const agentOnly = ({ roles }: KeyView) => roles.every((role) => role === "agent");
  return {
    disable: enabled.filter(agentOnly),
    left: enabled
      .filter((key) => !agentOnly(key))
      .map(({ name, fingerprint, roles }) => ({
        name,
        fingerprint,
        why: `has the role ${roles.filter((role) => role !== "agent").join(", ")}; disable it yourself if necessary`,
      })),
    note: null,
  };
}

interface RequestsFound {
  open: string[];
  approved: string[];
}

/** Finds the agents' own requests. Requests for undos belong to operators and stay open. */
export async function findRequests(
  { core }: Pick<ServiceApp, "core">,
  scope: ContainmentScope,
): Promise<RequestsFound> {
  const found: RequestsFound = { open: [], approved: [] };
  const now = core.env.now();
  for await (const { doc } of allRows(core.store, "approvals", {
    tag: approvalTags(["pending", "escalated", "approved"]),
  })) {
    if (doc.kind !== "call" || isExpired(doc, now) || !isInScope(scope, doc)) continue;
    (doc.status === "approved" ? found.approved : found.open).push(doc.id);
  }
  return found;
}

/**
 * Ledger position of the run's newest call that has to be undone, or was undone since `since_seq`; null if there is
 * none.
 */
export async function newestToUndo(
  { core }: Pick<ServiceApp, "core">,
  { run, down_to }: RunInScope,
  since_seq: number,
): Promise<number | null> {
  for await (const { doc } of allRows(core.store, "steps", { owner: run.run_id, order: "desc", page: 100 })) {
    if (doc.step < down_to) return null;
    if (needsUndo(doc) || (doc.compensated_seq ?? -1) >= since_seq) return ledgerPlace(doc);
  }
  return null;
}

export const runLabels = ({ run_id, actor, tenant }: RunDoc) => ({ run_id, actor, tenant });

/**
 * Previews the combined rollback of these runs. With `stateReader`, compares the current and the predicted state of each
 * resource with the state its call left.
 */
export async function previewRollback(
  { core, jobTools }: ServiceApp,
  runs: readonly RunInScope[],
  rollback: ContainReport["rollback"],
  stateReader: StateReader | null = null,
): Promise<RunContainment[]> {
  const now_ms = core.env.now();
  const loaded: LoadedRun[] = [];
  const broken = new Map<string, string>();
  for (const { run, down_to } of runs) {
    try {
      const whole = await loadForRollback(core.store, run.run_id);
      loaded.push({ ...whole, steps: whole.steps.slice(down_to) });
    } catch (error) {
      // A run with a broken seal is not undone; the others are.
      broken.set(run.run_id, messageOf(error));
    }
  }
  const consented = await consentedIn(core, loaded);
  const states = stateReader && (await readStates(loaded, stateReader, now_ms));
  const lacking = await unavailableTools(rollback === "yes" ? jobTools : null, loaded);
  const readers = readBackTools(loaded);
  const prospectOf = (run_id: string, { step, compensation_tool }: CompensateAction): UndoProspect => {
    const key = stepKey(run_id, step);
    const away = lacking.readers.get(readers.get(key) ?? "");
    return {
      consented: consented.has(key),
      unavailable: lacking.undos.get(compensation_tool) ?? null,
      read_back: !jobTools?.reader ? "no_reader" : away === undefined ? "possible" : { unavailable: away },
    };
  };
  const left = (run_id: string, action: CompensateAction) =>
    rollback === "yes" && skipReason(action, prospectOf(run_id, action)) !== null;
  const plans = new Map(planTogether(loaded, { now_ms, states, left }).map((plan) => [plan.run_id, plan]));
  return runs.map(({ run }) => {
    const { run_id } = run;
    const plan = plans.get(run_id) ?? { run_id, actions: [], fully_reversible: false };
    const predicted = predictedLeftovers(runLabels(run), plan, rollback, (action) =>
      prospectOf(run_id, action),
    );
    return { ...predicted, error: broken.get(run_id) ?? null };
  });
}

/** Tools of these runs' undos that nothing here can call, each with the reason: those that undo, those that read back. */
async function unavailableTools(
  jobTools: JobTools | null,
  runs: readonly LoadedRun[],
): Promise<{ undos: Map<string, string>; readers: Map<string, string> }> {
  const lacking = { undos: new Map<string, string>(), readers: new Map<string, string>() };
  if (jobTools?.unavailable === undefined) return lacking;
  const undos = new Set<string>();
  for (const { steps, manifests } of runs)
    for (const step of steps.filter(needsUndo)) {
      const undo = manifests.get(step.manifest_hash ?? "")?.compensation;
      if (undo) for (const tool of [undo.tool, undo.when_absent?.tool]) if (tool) undos.add(tool);
    }
  for (const tool of undos) {
    const why = await jobTools.unavailable(tool, "undo");
    if (why !== null) lacking.undos.set(tool, why);
  }
  if (!jobTools.reader) return lacking;
  for (const tool of new Set(readBackTools(runs).values())) {
    const why = await jobTools.unavailable(tool, "read");
    if (why !== null) lacking.readers.set(tool, why);
  }
  return lacking;
}

/** Verification tool of each undo, by step. */
function readBackTools(runs: readonly LoadedRun[]): Map<string, string> {
  const tools = new Map<string, string>();
  for (const { steps, manifests } of runs)
    for (const step of steps.filter(needsUndo)) {
      const tool = manifests.get(step.manifest_hash ?? "")?.verification?.tool;
      if (tool !== undefined) tools.set(stepKey(step.run_id, step.step), tool);
    }
  return tools;
}

/** Keys of the steps whose undo requires an approval and has it. */
async function consentedIn(core: EngineCore, runs: readonly LoadedRun[]): Promise<Set<string>> {
  const consented = new Set<string>();
  for (const { steps, manifests } of runs)
    for (const step of steps) {
      const asks = manifests.get(step.manifest_hash ?? "")?.compensation?.requires_approval === true;
      if (asks && needsUndo(step) && (await isUndoApproved(core, step)))
        consented.add(stepKey(step.run_id, step.step));
    }
  return consented;
}

/** Calls of other runs that were built on the steps that a containment undoes, or would if they could be undone. */
export async function dependentsOfRuns(
  { core }: Pick<ServiceApp, "core">,
  runs: readonly RunContainment[],
): Promise<DependentStep[]> {
  const roots = runs.flatMap(({ run_id, undone, cannot }) =>
    [...undone, ...cannot].map(({ step }) => ({ run_id, step })),
  );
  const whole = runs.map(({ run_id }) => run_id);
  return (await findDependents(core.store, { roots, whole }, core.env.now())).dependents;
}

/** The report's entry; none without dependents. */
export const listedDependents = (dependents: DependentStep[]): { dependents?: DependentStep[] } =>
  dependents.length === 0 ? {} : { dependents };

/** The complete preview of a containment, in the shape of its report. */
export async function previewContainment(
  app: ServiceApp,
  scope: ContainmentScope,
  found: ScopeMatch,
  rollback: ContainReport["rollback"],
  halt: ContainReport["halt"],
): Promise<ContainReport> {
  const keys = await findKeys(app, scope);
  const requests = await findRequests(app, scope);
  const revoked: ContainReport["revoked"] = { plans: [], delegations: [], grants: [] };
  const wider: WiderAuthority[] = [];
  for (const [kind, { find }] of Object.entries(REVOCABLE_AUTHORITY)) {
    const those = await find(app, scope, found.actors);
    revoked[kind as keyof typeof REVOCABLE_AUTHORITY] = those.names;
    wider.push(...those.wider);
  }
  const inScope = await runsInScope(app.core, found.runs, scope);
  const runs = await previewRollback(app, inScope, rollback, rollback === "yes" ? stateReaderFor(app) : null);
  return withTotals({
    actors: found.actors,
    halt,
    keys: {
      disabled: keys.disable.map(({ name, fingerprint }) => ({ name, fingerprint })),
      left: keys.left,
      note: keys.note,
    },
    requests: { denied: requests.open, approved: requests.approved },
    revoked,
    wider,
    rollback,
    runs: runs.reverse(),
    ...listedDependents(await dependentsOfRuns(app, runs)),
    bundles: { folder: null, note: app.signing === null ? NO_SIGNING_KEY : null },
  });
}
