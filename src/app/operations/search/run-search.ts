/**
 * Finding runs. The store narrows by what it has an index for (who opened it, when, whether it needs
 * attention); the rest is looked at run by run, and a page ends after a bounded number of looks.
 */
import type { Core } from "../../../engine/core.ts";
import { runToolKey } from "../../../engine/keys.ts";
import { RunStates } from "../../../engine/run-state.ts";
import type { RunDoc, RunState } from "../../../model/run.ts";
import type { DocRow, ListQuery } from "../../../port/store.ts";

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

export interface FoundRun {
  run_id: string;
  actor: string;
  mode: RunDoc["mode"];
  tenant: string | null;
  reason: string | null;
  created_ms: number;
  steps: number;
  unresolved: number;
  attention: boolean;
  state: RunState;
}

const LOOKS = 5_000;
const PAGE = 200;

export async function findRuns(
  core: Core,
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
      // Only another match tells that the page is not the last.
      if (full !== undefined) return { runs, next: full };
      runs.push(found);
      if (runs.length === query.limit) full = after;
    }
    if (rows.length < PAGE) return { runs, next: null };
  }
  // Enough for one answer; the cursor goes on from here even if this page is short.
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
  core: Core,
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
