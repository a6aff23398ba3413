/**
 * Finds runs. The store filters by its indexes (actor, time, attention). The other filters are checked run by run, and
 * a page ends after a bounded number of checks.
 */
import * as z from "zod";
import type { EngineCore } from "../../govern/core.ts";
import { runToolKey } from "../../govern/document-keys.ts";
import type { DocRow, ListQuery } from "../../govern/port/store.ts";
import { RUN_MODES, RUN_STATES, type RunDoc } from "../../govern/runs/run.ts";
import { RunStates } from "../../govern/runs/run-state.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";

interface RunQuery {
  actor?: string | undefined;
  tool?: string | undefined;
  tenant?: string | undefined;
  mode?: string | undefined;
  status?: string | undefined;
  event?: string | undefined;
  since_ms?: number | undefined;
  until_ms?: number | undefined;
  attention: boolean;
  q?: string | undefined;
  order?: "asc" | "desc" | undefined;
  limit: number;
  after?: { sort: number; key: string } | undefined;
}

export const foundRunShape = z.strictObject({
  run_id: z.string(),
  actor: z.string(),
  mode: z.enum(RUN_MODES),
  tenant: nullableSchema(z.string()),
  reason: nullableSchema(z.string()),
  created_ms: z.int(),
  steps: z.int(),
  unresolved: z.int(),
  attention: z.boolean(),
  state: z.enum(RUN_STATES),
});

export type FoundRun = z.output<typeof foundRunShape>;

const LOOKS = 5_000;
const PAGE = 200;

export async function findRuns(
  core: EngineCore,
  query: RunQuery,
): Promise<{ runs: FoundRun[]; next: { sort: number; key: string } | null }> {
  const runs: FoundRun[] = [];
  const states = new RunStates(core);
  let after = query.after;
  let full: { sort: number; key: string } | undefined;
  for (let looks = 0; looks < LOOKS; ) {
    const rows = await core.store.list("runs", {
      ...storeQuery(query),
      after,
      order: query.order ?? "desc",
      limit: PAGE,
    });
    for (const row of rows) {
      looks++;
      after = { sort: row.sort, key: row.key };
      const found = await examine(core, row, query, states);
      if (found === null) continue;
      // Only a further match shows that this page is not the last.
      if (full !== undefined) return { runs, next: full };
      runs.push(found);
      if (runs.length === query.limit) full = after;
    }
    if (rows.length < PAGE) return { runs, next: null };
  }
  // Enough work for one response. The page may be short; the cursor continues from here.
  return { runs, next: full ?? after ?? null };
}

function storeQuery(query: RunQuery): Pick<ListQuery, "tag" | "from" | "to"> {
  return {
    tag: query.attention ? ["attention", "open"] : undefined,
    from: query.since_ms,
    to: query.until_ms,
  };
}

async function examine(
  core: EngineCore,
  { doc: run }: DocRow<"runs">,
  query: RunQuery,
  states: RunStates,
): Promise<FoundRun | null> {
  if (query.actor !== undefined && run.actor !== query.actor) return null;
  if (query.tenant !== undefined && run.tenant !== query.tenant) return null;
  if (query.mode !== undefined && run.mode !== query.mode) return null;
  if (query.q !== undefined && !textOf(run).includes(query.q.toLowerCase())) return null;
  const state = await states.stateOf(run);
  const attention = state === "needs attention";
  if (query.attention && !attention) return null;
  if (
    query.tool !== undefined &&
    (await core.store.get("run_tools", runToolKey(run.run_id, query.tool))) === undefined
  )
    return null;
  if (
    query.status !== undefined &&
    (await core.store.count("steps", { owner: run.run_id, tag: query.status })) === 0
  )
    return null;
  if (query.event !== undefined) {
    const { event } = query;
    if ((await core.store.records({ run_id: run.run_id, event, limit: 1 })).length === 0) return null;
  }
  const { run_id, actor, mode, tenant, reason, created_ms, next_step, open, uncertain } = run;
  return {
    run_id,
    actor,
    mode,
    tenant,
    reason,
    created_ms,
    steps: next_step,
    unresolved: open + uncertain,
    attention,
    state,
  };
}

const textOf = (run: RunDoc): string =>
  [run.run_id, run.actor, run.tenant ?? "", run.reason ?? ""].join("\n").toLowerCase();
