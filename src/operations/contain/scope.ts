/** Scope of a containment: actors by glob, optionally limited to tenants by another glob. */
import type { EngineCore } from "../../govern/core.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { invalidError } from "../../kernel/errors.ts";
import { compileGlob, globMatches } from "../../kernel/text/glob.ts";
import type { ServiceApp } from "../app.ts";
import { isKeyShown } from "../pipeline/access.ts";

export interface ContainmentScope {
  actor: string;
  tenant: string | null;
  since_ms: number | null;
}

/** Throws if a glob is invalid or the time is in the future. */
export function checkScope({ actor, tenant, since_ms }: ContainmentScope, now: number): void {
  compileGlob(actor);
  if (tenant !== null) compileGlob(tenant);
  if (since_ms !== null && since_ms > now) throw invalidError("since: is in the future");
}

export function isInScope(
  { actor, tenant }: ContainmentScope,
  who: { actor: string; tenant: string | null },
): boolean {
  if (!globMatches(actor, who.actor)) return false;
  return tenant === null || (who.tenant !== null && globMatches(tenant, who.tenant));
}

export interface ScopeMatch {
  /** Names of the matching actors, sorted. */
  actors: string[];
  /** Their runs, oldest first. */
  runs: RunDoc[];
}

/** Finds matching actors: those that opened a run, and those with a key that can open one. */
export async function findActors(
  { core, keys }: Pick<ServiceApp, "core" | "keys">,
  scope: ContainmentScope,
): Promise<ScopeMatch> {
  const actors = new Set<string>();
  const runs: RunDoc[] = [];
  for await (const { doc } of allRows(core.store, "runs")) {
    if (!isInScope(scope, doc)) continue;
    actors.add(doc.actor);
    runs.push(doc);
  }
  const entries = await (keys?.list() ?? Promise.resolve([])).catch(() => []);
  for (const entry of entries.filter((one) => isKeyShown({ core }, one)))
    if (entry.roles.includes("agent") && isInScope(scope, { actor: entry.name, tenant: entry.tenant }))
      actors.add(entry.name);
  return { actors: [...actors].sort(), runs };
}

/** A run with the range of its steps that the containment covers. */
export interface RunInScope {
  run: RunDoc;
  /** First step in scope. */
  down_to: number;
}

/** Runs that were opened, or took a step, since the given time. */
export async function runsInScope(
  core: EngineCore,
  runs: readonly RunDoc[],
  { since_ms }: ContainmentScope,
): Promise<RunInScope[]> {
  if (since_ms === null) return runs.map((run) => ({ run, down_to: 0 }));
  const found: RunInScope[] = [];
  for (const run of runs) {
    let down_to: number | null = null;
    for await (const { doc } of allRows(core.store, "steps", {
      owner: run.run_id,
      order: "desc",
      page: 100,
    })) {
      if (doc.intended_ms < since_ms) break;
      down_to = doc.step;
    }
    if (down_to !== null || run.created_ms >= since_ms) found.push({ run, down_to: down_to ?? 0 });
  }
  return found;
}
