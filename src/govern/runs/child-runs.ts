/** Finds the child runs of a run, and all runs below it. */
import { allRows } from "../port/pages.ts";
import type { StateStore } from "../port/store.ts";
import { type ChildRunDoc, countedRun, type RunDoc } from "./run.ts";

type Listed = Pick<StateStore, "list">;

/** Ids of the runs that this run opened, oldest first. */
export async function childRunsOf(store: Listed, run: RunDoc): Promise<string[]> {
  if ((run.children ?? 0) === 0) return [];
  const found: string[] = [];
  for await (const { doc } of allRows(store, "child_runs", { owner: countedRun(run), tag: run.run_id }))
    found.push(doc.run_id);
  return found;
}

/** Ids of all runs below this run. A run comes after the run that opened it. */
export async function runsBelow(store: Listed, run: RunDoc): Promise<string[]> {
  if ((run.children ?? 0) === 0) return [];
  const entries = new Map<string, ChildRunDoc[]>();
  for await (const { doc } of allRows(store, "child_runs", { owner: countedRun(run) }))
    entries.set(doc.parent, [...(entries.get(doc.parent) ?? []), doc]);
  const found: string[] = [];
  for (let level = [run.run_id]; level.length > 0; ) {
    level = level.flatMap((run_id) => (entries.get(run_id) ?? []).map((doc) => doc.run_id));
    found.push(...level);
  }
  return found;
}
