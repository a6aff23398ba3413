/** The newest runs of one agent, and what they did. The store finds runs by who opened them, not by name. */
import type { EngineCore } from "../../govern/core.ts";
import { allRows } from "../../govern/port/pages.ts";
import { keyId, localId } from "../../govern/roles.ts";
import { ACTIVE_STEP_STATUSES, type RunDoc, type RunState } from "../../govern/runs/run.ts";
import { RunStates } from "../../govern/runs/run-state.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ServiceApp } from "../app.ts";

const RUNS_LISTED = 50;
const MAX_LISTED = 200;
const LIBRARY = "library:";

/** A name can be a key, a token, the command line or an agent inside a program. */
function principalsNamed({ settings, principalNamed }: ServiceApp, name: string): string[] {
  const ids = new Set([keyId(name), localId(name), `${LIBRARY}${name}`]);
  if (settings.oidc.issuer !== null) ids.add(principalNamed(name, "oidc"));
  return [...ids];
}

/** Newest first. */
export async function latestRunsOf(
  app: ServiceApp,
  actor: string,
): Promise<{ runs: RunDoc[]; more: boolean }> {
  const found: RunDoc[] = [];
  for (const owner of principalsNamed(app, actor)) {
    const rows = await app.core.store.list("runs", { owner, order: "desc", limit: RUNS_LISTED + 1 });
    found.push(...rows.map(({ doc }) => doc).filter((run) => run.actor === actor));
  }
  found.sort((a, b) => b.created_ms - a.created_ms || (a.run_id < b.run_id ? 1 : -1));
  return { runs: found.slice(0, RUNS_LISTED), more: found.length > RUNS_LISTED };
}

export interface ActorRun {
  run_id: string;
  tenant: string | null;
  mode: RunDoc["mode"];
  reason: string | null;
  created_ms: number;
  steps: number;
  state: RunState;
}

/** What the agent did in these runs. */
export interface RunsSummary {
  runs: ActorRun[];
  tools: Set<string>;
  standing: { run_id: string; step: number; tool: string; status: string }[];
  undone: number;
  undo_failed: number;
}

export async function summarizeRuns(core: EngineCore, runs: readonly RunDoc[]): Promise<RunsSummary> {
  const states = new RunStates(core);
  const found: RunsSummary = { runs: [], tools: new Set(), standing: [], undone: 0, undo_failed: 0 };
  const { store } = core;
  for (const run of runs) {
    const { run_id, tenant, mode, reason, created_ms, next_step: steps, compensation_failed } = run;
    found.runs.push({
      ...{ run_id, tenant, mode, reason, created_ms, steps },
      state: await states.stateOf(run),
    });
    let active = 0;
    for await (const { doc } of allRows(store, "run_tools", { owner: run_id })) {
      found.tools.add(doc.tool);
      active += doc.standing;
    }
    found.undone += await store.count("steps", { owner: run_id, tag: "compensated" });
    found.undo_failed += compensation_failed;
    if (active > 0) await addActiveSteps(core, run_id, found.standing);
  }
  return found;
}

async function addActiveSteps(
  { store }: EngineCore,
  run_id: string,
  standing: RunsSummary["standing"],
): Promise<void> {
  const limit = MAX_LISTED - standing.length;
  if (limit <= 0) return;
  const rows = await store.list("steps", {
    owner: run_id,
    tag: [...ACTIVE_STEP_STATUSES],
    order: "desc",
    limit,
  });
  for (const { doc } of rows) {
    const { step, tool, status, effect } = doc;
    if (effect !== "read") standing.push({ run_id, step, tool, status });
  }
}

const DAY_MS = 86_400_000;
const UNDO_DAYS = 14;
const UNDO_RECORDS = 5_000;

export interface UndoDay {
  day_ms: number;
  undone: number;
  failed: number;
}

/** Undos of these runs by day, oldest first, among the newest records of undos. */
export async function countUndos(core: EngineCore, runs: readonly RunDoc[]): Promise<UndoDay[]> {
  const today = Math.floor(core.env.now() / DAY_MS);
  const first = today - UNDO_DAYS + 1;
  const days = Array.from({ length: UNDO_DAYS }, (_, i) => ({
    day_ms: (first + i) * DAY_MS,
    undone: 0,
    failed: 0,
  }));
  const ids = new Set(runs.map(({ run_id }) => run_id));
  const lines = await core.store.records({
    event: ["compensated", "compensation_failed"],
    since_ms: first * DAY_MS,
    order: "desc",
    limit: UNDO_RECORDS,
  });
  for (const line of lines) {
    const { run_id, event, ts_ms } = JSON.parse(line) as LedgerRecord;
    const day = days[Math.floor(ts_ms / DAY_MS) - first];
    if (day === undefined || run_id === undefined || !ids.has(run_id)) continue;
    if (event === "compensated") day.undone++;
    else day.failed++;
  }
  return days;
}
