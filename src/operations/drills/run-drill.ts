/**
 * Runs one drill: makes the example call in its own run, checks that it took effect, undoes it and verifies. The undo
 * tool's response proves nothing; the state read afterwards does.
 */
import { appendRunRecord } from "../../govern/records.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { loadRun } from "../../govern/runs/load-run.ts";
import { newRun, openRunUnit } from "../../govern/runs/open-run.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { firstMismatch } from "../../kernel/partial-match.ts";
import { fillTemplate } from "../../kernel/paths.ts";
import { classifyUndo, type ReadBackSpec } from "../../rollback/plan/classify.ts";
import { loadForRollback } from "../../rollback/plan/load-run.ts";
import type { ReadRequest } from "../../rollback/ports.ts";
import { executeRollback } from "../../rollback/undo/execute.ts";
import { readEach } from "../../rollback/undo/read-each.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { removeCallValues } from "../../rules/redact/remove-values.ts";
import type { DrillDoc } from "../../rules/undo-proof.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import type { DrillTools } from "./ports.ts";

const NEVER = new AbortController().signal;

export async function runDrill(
  app: ServiceApp,
  manifest: ToolManifest,
  by: string,
  tools: DrillTools,
): Promise<DrillDoc> {
  const { core } = app;
  const principal = drillPrincipal(by);
  const permissions = core.rules().manifests.permissions;
  const run = newRun(core, principal, { permissions, reason: `drill of ${manifest.tool}` });
  await core.store.transact(openRunUnit(run));
  const problem = await tried(app, run, principal, manifest, tools).catch((error: unknown) =>
    removeCallValues(messageOf(error), manifest.drill?.args),
  );
  return keepDrill(app, run, manifest, by, problem);
}

/** Principal for the drill's calls, named after the caller and limited only by the manifests. */
export function drillPrincipal(by: string): CallerPrincipal {
  const nothing = { groups: [], tenant: null, allow_observe: false };
  return { id: `drill:${by}`, name: by, roles: ["agent"], max_permissions: null, ...nothing };
}

/** Returns the first problem, or null. In any case, undoes a call that took effect. */
async function tried(
  app: ServiceApp,
  run: RunDoc,
  principal: CallerPrincipal,
  manifest: ToolManifest,
  tools: DrillTools,
): Promise<string | null> {
  const { core } = app;
  const answers = await answersNow(run, manifest, tools);
  const made = await tools.make(run, principal, manifest.tool, manifest.drill!.args);
  if ("problem" in made) return removeCallValues(made.problem, manifest.drill!.args);
  const wrong =
    unexpected(manifest, made.result) ?? (await withoutEffect(app, run, made.step, tools, answers));
  const { make: _, ...undo } = tools;
  const options = { ...undo, actor: principal.name, stop: app.background.signal };
  const report = await executeRollback(core, run.run_id, options);
  if (wrong !== null) return wrong;
  const [failed] = report.failed;
  if (failed !== undefined) return `the undo failed: ${failed.error}`;
  if (report.unverified.length > 0) return "the undo could not be read back";
  if (report.awaiting_approval.length > 0) return "the undo awaits approval and did not run";
  return report.compensated.includes(made.step) ? null : "the call was not undone";
}

function unexpected({ drill }: ToolManifest, result: JsonValue | undefined): string | null {
  if (drill?.expect === undefined) return null;
  if (result === undefined) return "the call returned no result, but one is expected";
  const mismatch = firstMismatch(drill.expect, result);
  return mismatch === null ? null : `the result is not as expected: ${mismatch}`;
}

/** Whether the verification read works before the call. If so, a failure afterwards is an effect of the call. */
async function answersNow(run: RunDoc, manifest: ToolManifest, tools: DrillTools): Promise<boolean> {
  const { verification, drill } = manifest;
  const args = verification && fillTemplate(verification.args, { args: drill!.args, result: undefined });
  if (verification === null || args == null) return false;
  return look(run, { tool: verification.tool, arguments: args }, tools).then(
    () => true,
    () => false,
  );
}

async function look(
  { run_id }: RunDoc,
  read: ReadRequest,
  { reader, objection }: DrillTools,
): Promise<JsonValue> {
  const against = await objection?.([read.tool]);
  if (against != null) throw new Error(against);
  return readEach((one) => reader(one, NEVER, run_id), read, NEVER);
}

/**
 * Returns a problem if the call had no visible effect. A verification that matches before the undo would also match
 * after an undo that does nothing. A read that worked before the call and fails now counts as an effect, as for a moved
 * file.
 */
async function withoutEffect(
  { core }: ServiceApp,
  run: RunDoc,
  step: number,
  tools: DrillTools,
  answered: boolean,
): Promise<string | null> {
  const spec = await readBackOf(core, run.run_id, step);
  if (spec === null || spec.arguments === undefined) return "no read-back is possible";
  const read = { tool: spec.tool, arguments: spec.arguments };
  let seen: JsonValue;
  try {
    // Retry once: a transient failure is not an effect.
    seen = await look(run, read, tools).catch(() => look(run, read, tools));
  } catch (error) {
    if (answered) return null;
    return `the read-back failed: ${removeCallValues(messageOf(error), spec.arguments, spec.expect)}`;
  }
  return firstMismatch(spec.expect, seen) === null
    ? "the read-back matches before the undo: the call took no effect, or the read-back proves nothing"
    : null;
}

async function readBackOf(
  core: ServiceApp["core"],
  run_id: string,
  step: number,
): Promise<ReadBackSpec | null> {
  const { steps, manifests, payloads } = await loadForRollback(core.store, run_id);
  const doc = steps[step];
  const manifest = doc?.manifest_hash == null ? undefined : manifests.get(doc.manifest_hash);
  const classified = doc === undefined ? null : classifyUndo(doc, manifest, payloads[step], core.env.now());
  return classified?.kind === "compensate" ? classified.undo.read_back : null;
}

/** Stores the result as the tool's latest drill and records it on the drill's own run. */
export async function keepDrill(
  { core }: ServiceApp,
  run: RunDoc,
  manifest: ToolManifest,
  by: string,
  problem: string | null,
): Promise<DrillDoc> {
  const { tool } = manifest;
  const doc: DrillDoc = {
    tool,
    manifest_hash: core.rules().manifests.hashOf(manifest),
    at_ms: core.env.now(),
    passed: problem === null,
    problem: problem === null ? null : core.redact(problem).slice(0, 1_000),
    run_id: run.run_id,
    by,
  };
  const record = await core.store.transact({
    needs: [["runs", run.run_id]],
    run(tx) {
      const now = loadRun(tx, run.run_id);
      const record = appendRunRecord(tx, now, {
        event: doc.passed ? "drill_passed" : "drill_failed",
        actor: by,
        ts_ms: doc.at_ms,
        tool,
        detail: `manifest ${doc.manifest_hash}${doc.problem === null ? "" : `: ${doc.problem}`}`,
        effect: manifest.effect,
        manifest_version: manifest.version,
      });
      tx.put("runs", run.run_id, now);
      tx.put("drills", tool, doc);
      return record;
    },
  });
  announceRecords(core.listeners, [record]);
  return doc;
}
