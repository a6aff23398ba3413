/** What a containment would find now: keys, requests, lent authority and runs of those who match. Changes nothing. */
import type { KeyView } from "../../../auth/manage.ts";
import type { Core } from "../../../engine/core.ts";
import { stepKey } from "../../../engine/keys.ts";
import { messageOf } from "../../../kernel/errors.ts";
import { everyTag } from "../../../model/approval.ts";
import type { RunDoc } from "../../../model/run.ts";
import { allRows } from "../../../port/pages.ts";
import { needsUndo } from "../../../rollback/classify.ts";
import { hasConsent } from "../../../rollback/consent.ts";
import { ledgerPlace } from "../../../rollback/in-order.ts";
import type { JobTools } from "../../../rollback/job.ts";
import { type Loaded, loadForRollback } from "../../../rollback/load.ts";
import { type Lookout, readStates } from "../../../rollback/look.ts";
import { type CompensateAction, planTogether } from "../../../rollback/plan.ts";
import type { App } from "../../app.ts";
import { isKeyShown } from "../../door/access.ts";
import { lookoutOf } from "../rollback/lookout.ts";
import { REVOCABLE, type WiderLine } from "./authority.ts";
import {
  type ContainReport,
  foretold,
  NO_SIGNING_KEY,
  type RunContainment,
  summed,
  type UndoProspect,
  whyLeft,
} from "./report.ts";
import { isInScope, type RunInScope, runsInScope, type Scope, type ScopeMatch } from "./scope.ts";

interface KeysFound {
  /** Enabled keys that are an agent's and nothing else. */
  disable: KeyView[];
  left: { name: string; fingerprint: string; why: string }[];
  note: string | null;
}

/** Keys of those who match. One that carries a further role belongs to a person's work, and is left to a person. */
export async function findKeys(app: Pick<App, "core" | "keys">, scope: Scope): Promise<KeysFound> {
  const { keys } = app;
  if (keys === null)
    return { disable: [], left: [], note: "no key file is configured here; the halt holds every credential" };
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
        why: `has the role ${roles.filter((role) => role !== "agent").join(", ")}; disable it by hand where it should be`,
      })),
    note: null,
  };
}

interface RequestsFound {
  open: string[];
  approved: string[];
}

/** The agent's own requests; those for undoing its steps are an operator's, and stay open. */
export async function findRequests({ core }: Pick<App, "core">, scope: Scope): Promise<RequestsFound> {
  const found: RequestsFound = { open: [], approved: [] };
  const now = core.env.now();
  for await (const { doc } of allRows(core.store, "approvals", {
    tag: everyTag(["pending", "escalated", "approved"]),
  })) {
    if (doc.kind !== "call" || now >= doc.expires_ms || !isInScope(scope, doc)) continue;
    (doc.status === "approved" ? found.approved : found.open).push(doc.id);
  }
  return found;
}

/** Where the run's newest call stands that has to be undone, or was since `since_seq`; null where there is none. */
export async function newestToUndo(
  { core }: Pick<App, "core">,
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
 * What rolling these runs back as one would do with each. With a lookout, what is there now, and will be after each
 * undo, is compared with what the calls left.
 */
export async function foretell(
  { core, jobTools }: App,
  runs: readonly RunInScope[],
  rollback: ContainReport["rollback"],
  lookout: Lookout | null = null,
): Promise<RunContainment[]> {
  const now_ms = core.env.now();
  const loaded: Loaded[] = [];
  const broken = new Map<string, string>();
  for (const { run, down_to } of runs) {
    try {
      const whole = await loadForRollback(core.store, run.run_id);
      loaded.push({ ...whole, steps: whole.steps.slice(down_to) });
    } catch (error) {
      // A run whose scope was tampered with is not undone; the others are.
      broken.set(run.run_id, messageOf(error));
    }
  }
  const consented = await consentedIn(core, loaded);
  const states = lookout && (await readStates(loaded, lookout, now_ms));
  const lacking = rollback === "yes" ? await unavailableTools(jobTools, loaded) : new Map<string, string>();
  const prospectOf = (run_id: string, { step, compensation_tool }: CompensateAction): UndoProspect => ({
    consented: consented.has(stepKey(run_id, step)),
    unavailable: lacking.get(compensation_tool) ?? null,
  });
  const left = (run_id: string, action: CompensateAction) =>
    rollback === "yes" && whyLeft(action, prospectOf(run_id, action)) !== null;
  const plans = new Map(planTogether(loaded, { now_ms, states, left }).map((plan) => [plan.run_id, plan]));
  return runs.map(({ run }) => {
    const { run_id } = run;
    const plan = plans.get(run_id) ?? { run_id, actions: [], fully_reversible: false };
    const told = foretold(runLabels(run), plan, rollback, (action) => prospectOf(run_id, action));
    return { ...told, error: broken.get(run_id) ?? null };
  });
}

/** Undo tools of these runs that nothing here can call, each with the reason. */
async function unavailableTools(
  jobTools: JobTools | null,
  runs: readonly Loaded[],
): Promise<Map<string, string>> {
  const lacking = new Map<string, string>();
  if (jobTools?.unavailable === undefined) return lacking;
  const tools = new Set<string>();
  for (const { steps, manifests } of runs)
    for (const step of steps.filter(needsUndo)) {
      const undo = manifests.get(step.manifest_hash ?? "")?.compensation;
      if (undo) for (const tool of [undo.tool, undo.when_absent?.tool]) if (tool) tools.add(tool);
    }
  for (const tool of tools) {
    const why = await jobTools.unavailable(tool);
    if (why !== null) lacking.set(tool, why);
  }
  return lacking;
}

/** Steps, by key, whose undo a person has to approve and has approved. */
async function consentedIn(core: Core, runs: readonly Loaded[]): Promise<Set<string>> {
  const consented = new Set<string>();
  for (const { steps, manifests } of runs)
    for (const step of steps) {
      const asks = manifests.get(step.manifest_hash ?? "")?.compensation?.requires_approval === true;
      if (asks && needsUndo(step) && (await hasConsent(core, step)))
        consented.add(stepKey(step.run_id, step.step));
    }
  return consented;
}

/** The whole of what would be done and what would be left, before anything is. */
export async function survey(
  app: App,
  scope: Scope,
  found: ScopeMatch,
  rollback: ContainReport["rollback"],
  halt: ContainReport["halt"],
): Promise<ContainReport> {
  const keys = await findKeys(app, scope);
  const requests = await findRequests(app, scope);
  const revoked: ContainReport["revoked"] = { plans: [], delegations: [], grants: [] };
  const wider: WiderLine[] = [];
  for (const [kind, { find }] of Object.entries(REVOCABLE)) {
    const those = await find(app, scope, found.actors);
    revoked[kind as keyof typeof REVOCABLE] = those.names;
    wider.push(...those.wider);
  }
  const inScope = await runsInScope(app.core, found.runs, scope);
  const runs = await foretell(app, inScope, rollback, rollback === "yes" ? lookoutOf(app) : null);
  return summed({
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
    bundles: { folder: null, note: app.signing === null ? NO_SIGNING_KEY : null },
  });
}
