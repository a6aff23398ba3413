/**
 * Calls of an incident's runs that took effect and have no undo. They are not tasks: no command settles them, so people
 * decide what to do.
 */
import { allRows } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { closedText, isPermanent } from "../../rollback/plan/classify.ts";

export interface PermanentStep {
  run_id: string;
  step: number;
  tool: string;
  /** When its success was reported. */
  at_ms: number;
  why: string;
}

const STEPS_LISTED = 100;

/** The newest of them, newest first, and whether older ones are left out. */
export async function permanentSteps(
  store: StateStore,
  runs: readonly string[],
  now: number,
): Promise<{ steps: PermanentStep[]; more: boolean }> {
  const found: PermanentStep[] = [];
  for (const owner of runs)
    for await (const { doc } of allRows(store, "steps", { owner, tag: "succeeded" })) {
      if (!isPermanent(doc, now)) continue;
      const { run_id, step, tool, effect, closes_ms, finished_ms, intended_ms, manifest_hash } = doc;
      const why =
        manifest_hash === null
          ? "it has no manifest"
          : closes_ms === undefined || effect === "irreversible"
            ? "it is irreversible"
            : closedText(closes_ms);
      found.push({ run_id, step, tool, at_ms: finished_ms ?? intended_ms, why });
    }
  found.sort((a, b) => b.at_ms - a.at_ms);
  return { steps: found.slice(0, STEPS_LISTED), more: found.length > STEPS_LISTED };
}

export const permanentStepText = ({ run_id, step, tool, why }: Omit<PermanentStep, "at_ms">): string =>
  `${tool}, step ${step} in ${run_id}: ${why}`;
