/**
 * Access rules for runs. A credential bound to a tenant sees no other tenant's data. An agent gets 404 for another
 * agent's run on every route. Auditors and above can read any run. Only the principal that opened a run can journal on
 * it.
 */
import type { KeyView } from "../../auth/key-manager.ts";
import type { StoredDelegation } from "../../govern/approvals/approval.ts";
import type { RunFacts } from "../../govern/decide/load-facts.ts";
import {
  type CallerPrincipal,
  canRollBackOwnRuns,
  hasRole,
  type PrincipalRole,
  ROLE_MESSAGES,
  seesTenant,
  tenantBinding,
} from "../../govern/roles.ts";
import { assertSealed, isRunOwner, unknownRun } from "../../govern/runs/load-run.ts";
import { RUN_ID_FORM, type RunDoc } from "../../govern/runs/run.ts";
import { forbiddenError, type SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { withReplicaReads } from "../../store/replica-store.ts";
import { confinedStore, tenantOf, unconfinedStore } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";

const confinedApps = new WeakMap<ServiceApp, Map<string, ServiceApp>>();

/**
 * Returns the app as the principal sees it. For a principal bound to a tenant, that is the tenant's part of the store.
 */
export function appFor(app: ServiceApp, bound: Pick<CallerPrincipal, "tenant" | "tenant_only">): ServiceApp {
  const tenant = tenantBinding(bound);
  if (tenant === null || tenantOf(app.core.store) === tenant) return app;
  const known = confinedApps.get(app) ?? new Map<string, ServiceApp>();
  confinedApps.set(app, known);
  let confined = known.get(tenant);
  if (confined === undefined) {
    const core = { ...app.core, store: confinedStore(app.core.store, tenant) };
    // Inherit from `app`, so that connectors and a notifier set later are visible here too.
    confined = Object.create(app, { core: { value: core, enumerable: true } }) as ServiceApp;
    known.set(tenant, confined);
  }
  return confined;
}

const replicaApps = new WeakMap<ServiceApp, ServiceApp>();

/** Returns the app over the store's replica, for read-only operations; undefined if no replica is fresh enough. */
export async function replicaApp(app: ServiceApp): Promise<ServiceApp | undefined> {
  const { core } = app;
  const whole = unconfinedStore(core.store);
  const { replica } = whole;
  if (replica === undefined || !(await replica.isFresh())) return undefined;
  let looking = replicaApps.get(app);
  if (looking === undefined) {
    const tenant = tenantOf(core.store);
    const reads = withReplicaReads(whole, replica);
    const store = tenant === null ? reads : confinedStore(reads, tenant);
    looking = Object.create(app, { core: { value: { ...core, store }, enumerable: true } }) as ServiceApp;
    replicaApps.set(app, looking);
  }
  return looking;
}

/** Delegations to this name, including ended ones. */
export async function delegationsTo(
  { core }: Pick<ServiceApp, "core">,
  name: string,
): Promise<StoredDelegation[]> {
  const rows = await core.store.list("delegations", {
    owner: name,
    tag: "active",
    limit: SERVICE_LIMITS.page_max,
  });
  return rows.map((row) => row.doc);
}

export function requireRole(principal: CallerPrincipal, role: PrincipalRole): void {
  if (!hasRole(principal, role)) throw forbiddenError(ROLE_MESSAGES[role], "role_required");
}

/** Error for a tenant-bound credential that asks for service-wide data. */
export const serviceWideOnly = ({ tenant }: CallerPrincipal): SvcError =>
  forbiddenError(
    `this credential is bound to the tenant ${tenant}, and this operation concerns the entire service`,
    "tenant_bound",
  );

/** Tenant of a new object. For a principal bound to a tenant, it is always that tenant. */
export function effectiveTenant(principal: CallerPrincipal, wanted: string | undefined): string | undefined {
  const tenant = tenantBinding(principal);
  if (tenant === null) return wanted;
  if (wanted !== undefined && wanted !== tenant)
    throw forbiddenError(
      `this credential is bound to the tenant ${tenant}, and cannot act for another tenant`,
      "tenant_bound",
    );
  return tenant;
}

/** Whether this view of the app shows a key entry. Within a tenant, only keys bound to it are shown. */
export function isKeyShown({ core }: Pick<ServiceApp, "core">, { tenant, tenant_only }: KeyView): boolean {
  const own = tenantOf(core.store);
  return own === null || (tenant_only === true && tenant === own);
}

/** Immutable facts of a run, or undefined if it does not exist. Synchronous for a cached run. */
export function runFacts(app: ServiceApp, run_id: string): RunFacts | Promise<RunFacts | undefined> {
  return app.runFacts.get(run_id) ?? lookUp(app, run_id);
}

async function lookUp(app: ServiceApp, run_id: string): Promise<RunFacts | undefined> {
  const run = await app.core.store.get("runs", run_id);
  if (run === undefined) return undefined;
  const { principal, actor, acting, tenant, environment, salt, child_of } = run;
  const facts: RunFacts = { run_id, principal, actor, acting, tenant, environment, salt, child_of };
  app.runFacts.set(run_id, facts);
  return facts;
}

/** Hides other agents' runs from a principal that can read only its own. Synchronous for a cached run. */
export function hideForeignRun(
  app: ServiceApp,
  principal: CallerPrincipal,
  run_id: string,
): Promise<void> | undefined {
  if (hasRole(principal, "auditor") && tenantBinding(principal) === null) return undefined;
  const known = runFacts(app, run_id);
  if (known instanceof Promise) return known.then((facts) => assertThere(app, facts, principal, run_id));
  // A stored run is checked synchronously. A deleted one may still have its ledger records.
  if (known !== undefined && isThere(known, principal)) return undefined;
  return assertThere(app, known, principal, run_id);
}

function isThere(facts: RunFacts, principal: CallerPrincipal): boolean {
  return (
    (hasRole(principal, "auditor") || isRunOwner(facts, principal)) && seesTenant(principal, facts.tenant)
  );
}

async function assertThere(
  app: ServiceApp,
  facts: RunFacts | undefined,
  principal: CallerPrincipal,
  run_id: string,
): Promise<void> {
  if (facts !== undefined ? isThere(facts, principal) : await hasTrail(app, principal, run_id)) return;
  throw unknownRun(run_id);
}

/** The ledger records of a run that retention deleted still show its owner. */
async function hasTrail(app: ServiceApp, principal: CallerPrincipal, run_id: string): Promise<boolean> {
  if (!hasRole(principal, "auditor")) return false;
  return (await appFor(app, principal).core.store.records({ run_id, limit: 1 })).length > 0;
}

/** Current document of the run, for reading. */
export async function readRun(app: ServiceApp, run_id: string): Promise<RunDoc> {
  const run = await app.core.store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  assertSealed(run);
  return run;
}

/** Whether the caller opened the run and its key allows it to roll the run back. */
export async function undoesOwnRun(
  app: ServiceApp,
  principal: CallerPrincipal,
  run_id: unknown,
): Promise<boolean> {
  if (!canRollBackOwnRuns(principal) || typeof run_id !== "string" || !RUN_ID_FORM.test(run_id)) return false;
  const facts = await runFacts(app, run_id);
  return facts !== undefined && isRunOwner(facts, principal);
}

/** Facts of a run that this principal opened. Synchronous for a cached run. */
export function requireOwnRun(
  app: ServiceApp,
  principal: CallerPrincipal,
  run_id: string,
): RunFacts | Promise<RunFacts> {
  const known = runFacts(app, run_id);
  if (known instanceof Promise) return known.then((facts) => assertOwn(facts, principal, run_id));
  return assertOwn(known, principal, run_id);
}

function assertOwn(facts: RunFacts | undefined, principal: CallerPrincipal, run_id: string): RunFacts {
  if (facts === undefined || !seesTenant(principal, facts.tenant)) throw unknownRun(run_id);
  if (!isRunOwner(facts, principal)) {
    throw hasRole(principal, "auditor")
      ? forbiddenError("only the principal that opened this run may journal on it", "run_owner_only")
      : unknownRun(run_id);
  }
  return facts;
}
