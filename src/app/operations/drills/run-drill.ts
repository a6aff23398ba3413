/**
 * One drill: the example call in a run of its own through the whole pipeline, a look whether it took effect, its
 * undo, and the read-back. What the undo answers proves nothing; what can be read afterwards does.
 */
import { withoutValues } from "../../../engine/clean-text.ts";
import { loadRun } from "../../../engine/load-run.ts";
import { newRun, openRunUnit } from "../../../engine/open-run.ts";
import { appendRunRecord } from "../../../engine/records.ts";
import { messageOf } from "../../../kernel/errors.ts";
import type { Json } from "../../../kernel/json.ts";
import { firstMismatch } from "../../../kernel/partial.ts";
import { fillTemplate } from "../../../kernel/paths.ts";
import type { Manifest } from "../../../model/manifest/types.ts";
import type { DrillDoc } from "../../../model/proof.ts";
import type { Principal } from "../../../model/roles.ts";
import type { RunDoc } from "../../../model/run.ts";
import { classify, type ReadBackSpec } from "../../../rollback/classify.ts";
import { executeRollback } from "../../../rollback/execute.ts";
import { loadForRollback } from "../../../rollback/load.ts";
import type { ReadRequest } from "../../../rollback/ports.ts";
import { readEach } from "../../../rollback/read-each.ts";
import { type App, announce } from "../../app.ts";
import type { DrillTools } from "./ports.ts";

const NEVER = new AbortController().signal;

export async function runDrill(
  app: App,
  manifest: Manifest,
  by: string,
  tools: DrillTools,
): Promise<DrillDoc> {
  const { core } = app;
  const principal = drillPrincipal(by);
  const permissions = core.rules().manifests.permissions;
  const run = newRun(core, principal, { permissions, reason: `drill of ${manifest.tool}` });
  await core.store.transact(openRunUnit(run));
  const problem = await tried(app, run, principal, manifest, tools).catch((error: unknown) =>
    withoutValues(messageOf(error), manifest.drill?.args),
  );
  return keep(app, run, manifest, by, problem);
}

/** Makes calls in the name of whoever drills, within what the manifests declare. */
function drillPrincipal(by: string): Principal {
  const nothing = { groups: [], tenant: null, allow_observe: false };
  return { id: `drill:${by}`, name: by, roles: ["agent"], max_permissions: null, ...nothing };
}

/** What went wrong first, or null. Whatever that is, a call that took effect is undone. */
async function tried(
  app: App,
  run: RunDoc,
  principal: Principal,
  manifest: Manifest,
  tools: DrillTools,
): Promise<string | null> {
  const { core } = app;
  const answers = await answersNow(run, manifest, tools);
  const made = await tools.make(run, principal, manifest.tool, manifest.drill!.args);
  if ("problem" in made) return withoutValues(made.problem, manifest.drill!.args);
  const wrong =
    unexpected(manifest, made.result) ?? (await withoutEffect(app, run, made.step, tools, answers));
  const { make: _, ...undo } = tools;
  const options = { ...undo, actor: principal.name, stop: app.background.signal };
  const report = await executeRollback(core, run.run_id, options);
  if (wrong !== null) return wrong;
  const [failed] = report.failed;
  if (failed !== undefined) return `the undo failed: ${failed.error}`;
  if (report.unverified.length > 0) return "the undo could not be read back";
  if (report.awaiting_approval.length > 0) return "the undo waits for an approval, and was not made";
  return report.compensated.includes(made.step) ? null : "the call was not undone";
}

function unexpected({ drill }: Manifest, result: Json | undefined): string | null {
  if (drill?.expect === undefined) return null;
  if (result === undefined) return "the call gave no result, and one is expected";
  const mismatch = firstMismatch(drill.expect, result);
  return mismatch === null ? null : `the result is not as expected: ${mismatch}`;
}

/** Where the read-back can be made before the call and answers, its failing afterwards is the call's doing. */
async function answersNow(run: RunDoc, manifest: Manifest, tools: DrillTools): Promise<boolean> {
  const { verification, drill } = manifest;
  const args = verification && fillTemplate(verification.args, { args: drill!.args, result: undefined });
  if (verification === null || args == null) return false;
  return look(run, { tool: verification.tool, arguments: args }, tools).then(
    () => true,
    () => false,
  );
}

async function look({ run_id }: RunDoc, read: ReadRequest, { reader, objection }: DrillTools): Promise<Json> {
  const against = await objection?.([read.tool]);
  if (against != null) throw new Error(against);
  return readEach((one) => reader(one, NEVER, run_id), read, NEVER);
}

/**
 * A read-back that matches before the undo would match after one that does nothing, too. One that answered before the
 * call and fails since, as of a file that was moved away, does not match.
 */
async function withoutEffect(
  { core }: App,
  run: RunDoc,
  step: number,
  tools: DrillTools,
  answered: boolean,
): Promise<string | null> {
  const spec = await readBackOf(core, run.run_id, step);
  if (spec === null || spec.arguments === undefined) return "there is no read-back that could be made";
  const read = { tool: spec.tool, arguments: spec.arguments };
  let seen: Json;
  try {
    // Twice where it has to be: a passing failure is no effect.
    seen = await look(run, read, tools).catch(() => look(run, read, tools));
  } catch (error) {
    if (answered) return null;
    return `the read-back could not be made: ${withoutValues(messageOf(error), spec.arguments, spec.expect)}`;
  }
  return firstMismatch(spec.expect, seen) === null
    ? "the read-back matches before the undo: the call took no effect, or the read-back proves nothing"
    : null;
}

async function readBackOf(core: App["core"], run_id: string, step: number): Promise<ReadBackSpec | null> {
  const { steps, manifests, payloads } = await loadForRollback(core.store, run_id);
  const doc = steps[step];
  const manifest = doc?.manifest_hash == null ? undefined : manifests.get(doc.manifest_hash);
  const standing = doc === undefined ? null : classify(doc, manifest, payloads[step], core.env.now());
  return standing?.kind === "compensate" ? standing.undo.read_back : null;
}

/** The result, the manifest's hash and the time: kept as the tool's proof, and on the drill's own run on record. */
async function keep(
  { core }: App,
  run: RunDoc,
  manifest: Manifest,
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
  announce(core.listeners, [record]);
  return doc;
}
