/**
 * Who may touch which run. To a credential that is bound to a tenant, whatever belongs to another is not there. To an
 * agent another's run is a 404 whatever the route; auditors and above may read any run; only the principal that
 * opened a run journals on it.
 */
import type { KeyView } from "../../auth/manage.ts";
import type { RunFacts } from "../../engine/gather.ts";
import { assertSealed, unknownRun } from "../../engine/load-run.ts";
import { forbidden, type SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Delegation } from "../../model/approval.ts";
import {
  boundTo,
  hasRole,
  mayUndoOwn,
  type Principal,
  ROLE_MESSAGES,
  type Role,
  seesTenant,
} from "../../model/roles.ts";
import { RUN_ID_FORM, type RunDoc } from "../../model/run.ts";
import { confinedStore, tenantOf, wholeOf } from "../../store/confined.ts";
import { readingFrom } from "../../store/reading-from.ts";
import type { App } from "../app.ts";

const confinedApps = new WeakMap<App, Map<string, App>>();

/** The service as the principal may see it: for one that is bound to a tenant, over that tenant's part of the store. */
export function appFor(app: App, bound: Pick<Principal, "tenant" | "tenant_only">): App {
  const tenant = boundTo(bound);
  if (tenant === null || tenantOf(app.core.store) === tenant) return app;
  const known = confinedApps.get(app) ?? new Map<string, App>();
  confinedApps.set(app, known);
  let confined = known.get(tenant);
  if (confined === undefined) {
    const core = { ...app.core, store: confinedStore(app.core.store, tenant) };
    // What the service learns later (its connectors, its notifier) is seen here, too.
    confined = Object.create(app, { core: { value: core, enumerable: true } }) as App;
    known.set(tenant, confined);
  }
  return confined;
}

const replicaApps = new WeakMap<App, App>();

/** The service over the store's replica, for what only looks; undefined where there is none that is fresh enough. */
export async function replicaApp(app: App): Promise<App | undefined> {
  const { core } = app;
  const whole = wholeOf(core.store);
  const { replica } = whole;
  if (replica === undefined || !(await replica.isFresh())) return undefined;
  let looking = replicaApps.get(app);
  if (looking === undefined) {
    const tenant = tenantOf(core.store);
    const reads = readingFrom(whole, replica);
    const store = tenant === null ? reads : confinedStore(reads, tenant);
    looking = Object.create(app, { core: { value: { ...core, store }, enumerable: true } }) as App;
    replicaApps.set(app, looking);
  }
  return looking;
}

/** What was lent to a person of this name, ended loans included. */
export async function delegationsTo({ core }: Pick<App, "core">, name: string): Promise<Delegation[]> {
  const rows = await core.store.list("delegations", { owner: name, tag: "active", limit: LIMITS.page_max });
  return rows.map((row) => row.doc);
}

export function requireRole(principal: Principal, role: Role): void {
  if (!hasRole(principal, role)) throw forbidden(ROLE_MESSAGES[role], "role_required");
}

/** What a credential that is bound to a tenant is told of what concerns every tenant. */
export const wholeService = ({ tenant }: Principal): SvcError =>
  forbidden(
    `this credential is bound to the tenant ${tenant}, and this is a matter of the whole service`,
    "tenant_bound",
  );

/** The tenant that something is made for: of a principal that is bound to one, always that one. */
export function ownTenant(principal: Principal, wanted: string | undefined): string | undefined {
  const tenant = boundTo(principal);
  if (tenant === null) return wanted;
  if (wanted !== undefined && wanted !== tenant)
    throw forbidden(
      `this credential is bound to the tenant ${tenant}, and acts for no other`,
      "tenant_bound",
    );
  return tenant;
}

/** Whether an entry of the key file is there for whoever sees the service so: within a tenant, those bound to it are. */
export function isKeyShown({ core }: Pick<App, "core">, { tenant, tenant_only }: KeyView): boolean {
  const own = tenantOf(core.store);
  return own === null || (tenant_only === true && tenant === own);
}

/** The unchanging facts of a run, or undefined where there is none. At once for a run that is known. */
export function runFacts(app: App, run_id: string): RunFacts | Promise<RunFacts | undefined> {
  return app.runFacts.get(run_id) ?? lookUp(app, run_id);
}

async function lookUp(app: App, run_id: string): Promise<RunFacts | undefined> {
  const run = await app.core.store.get("runs", run_id);
  if (run === undefined) return undefined;
  const { principal, actor, tenant, environment, salt } = run;
  const facts: RunFacts = { run_id, principal, actor, tenant, environment, salt };
  app.runFacts.set(run_id, facts);
  return facts;
}

/** Hides other agents' runs from a principal that may read only its own; at once for a run that is known. */
export function hideForeignRun(app: App, principal: Principal, run_id: string): Promise<void> | undefined {
  if (hasRole(principal, "auditor") && boundTo(principal) === null) return undefined;
  const known = runFacts(app, run_id);
  if (known instanceof Promise) return known.then((facts) => assertThere(app, facts, principal, run_id));
  // A run that is stored is judged at once; one that is not may still have its trail.
  if (known !== undefined && isThere(known, principal)) return undefined;
  return assertThere(app, known, principal, run_id);
}

function isThere(facts: RunFacts, principal: Principal): boolean {
  return (
    (hasRole(principal, "auditor") || facts.principal === principal.id) && seesTenant(principal, facts.tenant)
  );
}

async function assertThere(
  app: App,
  facts: RunFacts | undefined,
  principal: Principal,
  run_id: string,
): Promise<void> {
  if (facts !== undefined ? isThere(facts, principal) : await hasTrail(app, principal, run_id)) return;
  throw unknownRun(run_id);
}

/** A run that retention deleted has its records left; they say whose it was. */
async function hasTrail(app: App, principal: Principal, run_id: string): Promise<boolean> {
  if (!hasRole(principal, "auditor")) return false;
  return (await appFor(app, principal).core.store.records({ run_id, limit: 1 })).length > 0;
}

/** The run as it is stored now, for reading. */
export async function readRun(app: App, run_id: string): Promise<RunDoc> {
  const run = await app.core.store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  assertSealed(run);
  return run;
}

/** Whether the run is the caller's own, and its key lets it roll that back. */
export async function undoesOwnRun(app: App, principal: Principal, run_id: unknown): Promise<boolean> {
  if (!mayUndoOwn(principal) || typeof run_id !== "string" || !RUN_ID_FORM.test(run_id)) return false;
  return (await runFacts(app, run_id))?.principal === principal.id;
}

/** The facts of a run that this principal opened; at once for a run that is known. */
export function ownRun(app: App, principal: Principal, run_id: string): RunFacts | Promise<RunFacts> {
  const known = runFacts(app, run_id);
  if (known instanceof Promise) return known.then((facts) => assertOwn(facts, principal, run_id));
  return assertOwn(known, principal, run_id);
}

function assertOwn(facts: RunFacts | undefined, principal: Principal, run_id: string): RunFacts {
  if (facts === undefined || !seesTenant(principal, facts.tenant)) throw unknownRun(run_id);
  if (facts.principal !== principal.id) {
    throw hasRole(principal, "auditor")
      ? forbidden("only the principal that opened this run may journal on it", "run_owner_only")
      : unknownRun(run_id);
  }
  return facts;
}
