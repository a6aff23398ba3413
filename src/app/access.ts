/**
 * Who may touch which run. To an agent another's run is a 404 whatever the route; auditors and above may
 * read any run; only the principal that opened a run journals on it.
 */

import type { RunFacts } from "../engine/gather.ts";
import { assertSealed, unknownRun } from "../engine/load-run.ts";
import { forbidden } from "../kernel/errors.ts";
import { hasRole, type Principal, ROLE_MESSAGES, type Role } from "../model/roles.ts";
import type { RunDoc } from "../model/run.ts";
import type { App } from "./app.ts";

export function requireRole(principal: Principal, role: Role): void {
  if (!hasRole(principal, role)) throw forbidden(ROLE_MESSAGES[role]);
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
  if (hasRole(principal, "auditor")) return undefined;
  const known = runFacts(app, run_id);
  if (known instanceof Promise) return known.then((facts) => assertOwn(facts, principal, run_id));
  assertOwn(known, principal, run_id);
  return undefined;
}

function assertOwn(facts: RunFacts | undefined, principal: Principal, run_id: string): void {
  if (facts?.principal !== principal.id) throw unknownRun(run_id);
}

/** The run as it is stored now, for reading. */
export async function readRun(app: App, run_id: string): Promise<RunDoc> {
  const run = await app.core.store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  assertSealed(run);
  return run;
}

/** The facts of a run that this principal opened. */
export async function ownRun(app: App, principal: Principal, run_id: string): Promise<RunFacts> {
  const facts = await runFacts(app, run_id);
  if (facts === undefined) throw unknownRun(run_id);
  if (facts.principal !== principal.id) {
    throw hasRole(principal, "auditor")
      ? forbidden("only the principal that opened this run may journal on it")
      : unknownRun(run_id);
  }
  return facts;
}
