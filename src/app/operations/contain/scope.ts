/** Whom a containment is about: actors by a glob, within the tenants of another where one is given. */
import type { Core } from "../../../engine/core.ts";
import { invalid } from "../../../kernel/errors.ts";
import { compileGlob, globMatches } from "../../../kernel/glob.ts";
import type { RunDoc } from "../../../model/run.ts";
import { allRows } from "../../../port/pages.ts";
import type { App } from "../../app.ts";
import { isKeyShown } from "../../door/access.ts";

export interface Scope {
  actor: string;
  tenant: string | null;
  since_ms: number | null;
}

/** Throws where a glob is none that can be used. */
export function checkScope({ actor, tenant, since_ms }: Scope, now: number): void {
  compileGlob(actor);
  if (tenant !== null) compileGlob(tenant);
  if (since_ms !== null && since_ms > now) throw invalid("since: is in the future");
}

export function isInScope({ actor, tenant }: Scope, who: { actor: string; tenant: string | null }): boolean {
  if (!globMatches(actor, who.actor)) return false;
  return tenant === null || (who.tenant !== null && globMatches(tenant, who.tenant));
}

export interface ScopeMatch {
  /** Names of those who match, in order. */
  actors: string[];
  /** Their runs, oldest first. */
  runs: RunDoc[];
}

/** Who matches: whoever opened a run, and whoever holds a key that could. */
export async function findActors(
  { core, keys }: Pick<App, "core" | "keys">,
  scope: Scope,
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

/** A run's calls that fall under a containment. */
export interface RunInScope {
  run: RunDoc;
  /** The first step that it looks at. */
  down_to: number;
}

/** Runs that were opened, or went on, since the time that is asked for. */
export async function runsInScope(
  core: Core,
  runs: readonly RunDoc[],
  { since_ms }: Scope,
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
