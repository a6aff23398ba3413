/**
 * `svc contain`: halts an agent, revokes its authority and undoes its calls, here or on a server. Exits with 2 if
 * anything is left. Resumes an interrupted containment when run again.
 */
import { KeyManager } from "../../../auth/key-manager.ts";
import { keyFileOf } from "../../../config/settings.ts";
import { conflictError, invalidError } from "../../../kernel/errors.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { ServiceApp } from "../../../operations/app.ts";
import { containAgent, getContain } from "../../../operations/contain/contain.ts";
import { resumeContainment } from "../../../operations/contain/job.ts";
import type { ContainReport, RunContainment } from "../../../operations/contain/report.ts";
import { commandTools } from "../../../operations/rollback/job-tools.ts";
import { httpJobTools } from "../../../service/start/http-undo.ts";
import {
  type CommandContext,
  type CommandFlags,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls, type PaintColors } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";
import { withUpstreamUndos } from "../../upstreams.ts";

const LOOK_MS = 200;
const OWN = ["compensatorCmd", "readerCmd", "keys"];

export const registerContain: RegisterCommand = (program, context) => {
  globalOptions(program.command("contain").description("Stop an agent and undo its work"))
    .requiredOption("--actor <glob>", "agent to contain: a name or a glob")
    .requiredOption("--reason <text>", "reason, shown with every blocked call")
    .option("--tenant <glob>", "only within these tenants")
    .option("--since <period>", "only calls since then, such as 24h (default: all)")
    .option("--expect-actors <n>", "how many actors the glob matches, if more than one")
    .option("--dry-run", "show what would be done, without doing it")
    .option("--no-rollback", "do not undo anything")
    .option("--compensator-cmd <cmd>", "command that runs each undo, as for svc rollback")
    .option("--reader-cmd <cmd>", "command that reads state, as for svc rollback")
    .option("--keys <file>", "API key file")
    .option("--as <name>", "who acts (default: cli)")
    .option("--json", "print the report as JSON")
    .action(async (flags: CommandFlags) => {
      await context.withDoor(
        flags,
        (door) => {
          const work = () => containBy(context, door, flags);
          return door.local === null ? work() : equipped(door.local, work);
        },
        OWN,
      );
    });
};

async function containBy(context: CommandContext, door: OperationClient, flags: CommandFlags): Promise<void> {
  const { io } = context;
  const text = (name: string) => flags[name] as string | undefined;
  const answer = await door.perform(containAgent, {
    actor: text("actor")!,
    tenant: text("tenant"),
    since: text("since"),
    reason: text("reason")!,
    no_rollback: flags["rollback"] === false,
    expect_actors: readCount(text("expectActors")),
    dry_run: flags["dryRun"] === true,
    confirm: true,
  });
  const report = "job" in answer ? await reportOf(door, answer.job.id, io.err) : answer;
  if (flags["json"]) io.out(JSON.stringify(report, null, 2));
  else for (const line of describeContainment(report, "dry_run" in answer, io.color)) io.out(line);
  if (!report.complete) context.done(EXIT_NEEDS_ATTENTION);
}

/** Lets this process undo calls, with commands or through upstreams, and edit the configured key file. */
function equipped(app: ServiceApp, work: () => Promise<void>): Promise<void> {
  app.jobTools = httpJobTools(app, commandTools(app));
  const path = keyFileOf(app.settings);
  if (path !== null) app.keys = new KeyManager(path, { env: app.core.env });
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void app.close().finally(() => process.exit(1)));
  return withUpstreamUndos(app, work);
}

function readCount(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(given))
    throw invalidError(`--expect-actors: ${escapeControls(given)} is not a whole number`);
  return Number(given);
}

/** Waits until the containment has ended. On local data, also takes it over from a process that died. */
async function reportOf(
  door: OperationClient,
  id: string,
  tell: (text: string) => void,
): Promise<ContainReport> {
  tell(`containment ${id}: the halt is active`);
  for (let looks = 0; ; looks++) {
    const { job } = await door.perform(getContain, { contain_id: id });
    if (job.state === "done") return job.report as ContainReport;
    if (job.state === "failed") throw conflictError("job_failed", `the containment failed: ${job.error}`);
    if (door.local !== null && looks > 0) await resumeContainment(door.local, id, undefined);
    await door.clock.sleep(LOOK_MS);
  }
}

function describeContainment(report: ContainReport, dry: boolean, color: PaintColors): string[] {
  const verb = (done: string, would: string) => (dry ? would : done);
  const { halt, keys, requests, revoked, wider, runs, bundles, actors } = report;
  const lines = [
    `${verb("contained", "would contain")}: ${actors.map(escapeControls).join(", ")}`,
    halt.was_there ? `  already halted (${halt.id})` : `  ${verb(`halted (${halt.id})`, "would be halted")}`,
  ];
  const list = (what: string, ids: readonly string[]) => {
    if (ids.length > 0) lines.push(`  ${what}: ${ids.map(escapeControls).join(", ")}`);
  };
  list(
    verb("keys disabled", "keys to disable"),
    keys.disabled.map(({ name, fingerprint }) => `${name} (${fingerprint})`),
  );
  for (const { name, fingerprint, why } of keys.left)
    lines.push(`  key left: ${escapeControls(name)} (${fingerprint}) ${why}`);
  if (keys.note !== null) lines.push(`  keys: ${escapeControls(keys.note)}`);
  list(verb("requests denied", "requests to deny"), requests.denied);
  list("approved before and unused", requests.approved);
  list(verb("plans revoked", "plans to revoke"), revoked.plans);
  list(verb("delegations revoked", "delegations to revoke"), revoked.delegations);
  list(verb("grants revoked", "grants to revoke"), revoked.grants);
  for (const { kind, id, covers } of wider)
    lines.push(`  wider ${kind} left: ${id} (${escapeControls(covers)})`);
  for (const run of runs) lines.push(...describeRun(run, dry));
  for (const { run_id, step, tool, because } of report.dependents ?? [])
    lines.push(
      `  built on it: run ${escapeControls(run_id)} step ${step} ${escapeControls(tool)}; to undo it too: svc rollback ${escapeControls(because[0]!.run_id)} --with ${escapeControls(run_id)}/${step}`,
    );
  for (const one of report.differences ?? [])
    lines.push(
      `  otherwise than previewed: run ${one.run_id} step ${one.step} ${escapeControls(one.tool)}: previewed ${escapeControls(one.promised)}; happened ${escapeControls(one.happened)}`,
    );
  if (bundles.folder !== null) lines.push(`  bundles: ${escapeControls(bundles.folder)}`);
  if (bundles.note !== null) lines.push(`  ${escapeControls(bundles.note)}`);
  const undone = `${formatCountOf(report.undone, "step", "steps")} ${verb("undone", "to undo")}`;
  const left = report.complete ? color.green("nothing left") : color.yellow(`${report.left} left`);
  return [...lines, `${undone}, ${left}`];
}

function describeRun(run: RunContainment, dry: boolean): string[] {
  const lines = [`  run ${run.run_id} (${escapeControls(run.actor)})`];
  if (run.undone.length > 0)
    lines.push(
      `    ${dry ? "to undo" : "undone"}: ${run.undone.map(({ step, tool }) => `${step} ${escapeControls(tool)}`).join(", ")}`,
    );
  for (const { step, tool, why } of run.cannot)
    lines.push(`    not undone: ${step} ${escapeControls(tool)}: ${escapeControls(why)}`);
  for (const { step, tool, why } of run.unknown)
    lines.push(`    unknown: ${step} ${escapeControls(tool)}: ${escapeControls(why)}`);
  if (run.error !== null) lines.push(`    error: ${escapeControls(run.error)}`);
  return lines;
}
