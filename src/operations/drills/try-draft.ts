/**
 * Tries a drafted undo in a separate run: makes the call, undoes it, and lets the caller read the state in between.
 * Without a verification in the manifest, these reads are the only evidence.
 */
import { newRun, openRunUnit } from "../../govern/runs/open-run.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { executeRollback } from "../../rollback/undo/execute.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { removeCallValues } from "../../rules/redact/remove-values.ts";
import type { ServiceApp } from "../app.ts";
import type { DrillTools } from "./ports.ts";
import { drillPrincipal, keepDrill } from "./run-drill.ts";

/** Reads the state. `made` is undefined before the call. */
export interface DraftLooks {
  beforeCall(run_id: string): Promise<void>;
  afterCall(run_id: string, made: { result: JsonValue | undefined }): Promise<void>;
  /** Returns the difference that the undo left; null if the state is as before. */
  afterUndo(run_id: string): Promise<string | null>;
}

/** `not tried` if the call itself could not be made. */
export type DraftTrial =
  | { found: "held"; run_id: string }
  | { found: "failed" | "not tried"; run_id: string; problem: string };

export async function tryDraft(
  app: ServiceApp,
  { manifest, args, by }: { manifest: ToolManifest; args: JsonValue; by: string },
  tools: DrillTools,
  looks: DraftLooks,
): Promise<DraftTrial> {
  const { core } = app;
  const principal = drillPrincipal(by);
  const { permissions } = core.rules().manifests;
  const run = newRun(core, principal, {
    permissions,
    reason: `trial of the drafted undo of ${manifest.tool}`,
  });
  const { run_id } = run;
  await core.store.transact(openRunUnit(run));
  const clean = (problem: string) => removeCallValues(problem, args);
  try {
    await looks.beforeCall(run_id);
    const made = await tools.make(run, principal, manifest.tool, args);
    if ("problem" in made) return { found: "not tried", run_id, problem: clean(made.problem) };
    await looks.afterCall(run_id, made);
    const { make: _, ...undo } = tools;
    const options = { ...undo, actor: by, stop: app.background.signal };
    const { failed, awaiting_approval, compensated } = await executeRollback(core, run_id, options);
    const problem =
      failed[0] !== undefined
        ? `the undo failed: ${failed[0].error}`
        : awaiting_approval.length > 0
          ? "the undo awaits approval and did not run"
          : compensated.includes(made.step)
            ? await looks.afterUndo(run_id)
            : "the call was not undone";
    await keepDrill(app, run, manifest, by, problem);
    return problem === null
      ? { found: "held", run_id }
      : { found: "failed", run_id, problem: clean(problem) };
  } catch (error) {
    return { found: "not tried", run_id, problem: clean(messageOf(error)) };
  }
}

async function openTrial({ core }: ServiceApp, by: string, reason: string) {
  const principal = drillPrincipal(by);
  const { permissions } = core.rules().manifests;
  const run = newRun(core, principal, { permissions, reason });
  await core.store.transact(openRunUnit(run));
  return { run, principal };
}

/** Makes a call that a trial needs first. `undo` rolls it back. Null if the call could not be made. */
export async function makeUndoableCall(
  app: ServiceApp,
  { make, ...undo }: DrillTools,
  { tool, args, by }: { tool: string; args: JsonValue; by: string },
): Promise<{ result: JsonValue | undefined; undo: () => Promise<void> } | null> {
  const { run, principal } = await openTrial(app, by, "preparation of a trial");
  const made = await make(run, principal, tool, args);
  if ("problem" in made) return null;
  return {
    result: made.result,
    async undo() {
      await executeRollback(app.core, run.run_id, { ...undo, actor: by, stop: app.background.signal });
    },
  };
}
