/** What a containment would find now: keys, requests, lent authority and runs of those who match. Changes nothing. */
import type { KeyView } from "../../../auth/manage.ts";
import type { Core } from "../../../engine/core.ts";
import { stepKey } from "../../../engine/keys.ts";
import { messageOf } from "../../../kernel/errors.ts";
import type { RunDoc } from "../../../model/run.ts";
import { needsUndo } from "../../../rollback/classify.ts";
import { hasConsent } from "../../../rollback/consent.ts";
import { loadPlan } from "../../../rollback/load.ts";
import type { Lookout } from "../../../rollback/look.ts";
import type { RollbackPlan } from "../../../rollback/plan.ts";
import type { App } from "../../app.ts";
import { isKeyShown } from "../../door/access.ts";
import { lookoutOf } from "../rollback/lookout.ts";
import { REVOCABLE, type WiderLine } from "./authority.ts";
import { type ContainReport, foretold, NO_SIGNING_KEY, type RunContainment, summed } from "./report.ts";
import { all, type Found, type RunInScope, runsInScope, type Scope, within } from "./scope.ts";

export interface KeysFound {
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
    (one) => !one.disabled && isKeyShown(app, one) && within(scope, { actor: one.name, tenant: one.tenant }),
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

export interface RequestsFound {
  open: string[];
  approved: string[];
}

/** The agent's own requests; those for undoing its steps are an operator's, and stay open. */
export async function findRequests({ core }: Pick<App, "core">, scope: Scope): Promise<RequestsFound> {
  const found: RequestsFound = { open: [], approved: [] };
  const now = core.env.now();
  for await (const { doc } of all(core.store, "approvals", { tag: ["pending", "escalated", "approved"] })) {
    if (doc.kind !== "call" || now >= doc.expires_ms || !within(scope, doc)) continue;
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
  for await (const { doc } of all(core.store, "steps", { owner: run.run_id, order: "desc", page: 100 })) {
    if (doc.step < down_to) return null;
    if (needsUndo(doc) || (doc.compensated_seq ?? -1) >= since_seq) return doc.intended_seq;
  }
  return null;
}

export const factsOf = ({ run_id, actor, tenant }: RunDoc) => ({ run_id, actor, tenant });

/** With a lookout, what is there now is compared with what the calls left. */
export async function foretell(
  { core }: App,
  { run, down_to }: RunInScope,
  rollback: ContainReport["rollback"],
  lookout: Lookout | null = null,
): Promise<RunContainment> {
  try {
    const plan = await loadPlan(core.store, run.run_id, { now_ms: core.env.now(), lookout });
    const consented = await consentedIn(core, plan);
    return foretold(factsOf(run), plan, down_to, rollback, consented);
  } catch (error) {
    // A run whose scope was tampered with is not undone; the others are.
    const none = { undone: [], cannot: [], unknown: [], bundle: null };
    return { ...factsOf(run), ...none, error: messageOf(error) };
  }
}

/** Steps whose undo waits for nobody any more. */
async function consentedIn(core: Core, { run_id, actions }: RollbackPlan): Promise<Set<number>> {
  const consented = new Set<number>();
  for (const action of actions) {
    if (action.kind !== "compensate" || !action.needs_approval) continue;
    const step = await core.store.get("steps", stepKey(run_id, action.step));
    if (step !== undefined && (await hasConsent(core, step))) consented.add(action.step);
  }
  return consented;
}

/** The whole of what would be done and what would be left, before anything is. */
export async function survey(
  app: App,
  scope: Scope,
  found: Found,
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
  const runs: RunContainment[] = [];
  const lookout = rollback === "yes" ? lookoutOf(app) : null;
  for (const one of await runsInScope(app.core, found.runs, scope))
    runs.push(await foretell(app, one, rollback, lookout));
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
