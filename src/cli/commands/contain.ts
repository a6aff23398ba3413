/**
 * `svc contain`: halts an agent, takes back what it holds and undoes what it did, here or on a server. Exits 2
 * when anything is left. Killed and run again it goes on where it was.
 */
import type { App } from "../../app/app.ts";
import { carryOn } from "../../app/operations/contain/job.ts";
import type { ContainReport, RunContainment } from "../../app/operations/contain/report.ts";
import { contain, getContain } from "../../app/operations/contain.ts";
import { commandTools } from "../../app/operations/rollback/job-tools.ts";
import { KeyManager } from "../../auth/manage.ts";
import { keyFileOf } from "../../config/settings.ts";
import { conflict, invalid } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { ATTENTION, type Context, type Flags, globalOptions, type Register } from "../context.ts";
import type { Door } from "../door.ts";
import { type Paint, printable } from "../io.ts";
import { undoingThroughUpstreams } from "../upstreams.ts";

const LOOK_MS = 200;
const OWN = ["compensatorCmd", "readerCmd", "keys"];

export const registerContain: Register = (program, context) => {
  globalOptions(
    program
      .command("contain")
      .description("halt an agent, disable its keys, take back what it holds and undo what it did"),
  )
    .requiredOption("--actor <glob>", "whom to contain")
    .requiredOption("--reason <text>", "why; every blocked call carries it")
    .option("--tenant <glob>", "only within these tenants")
    .option("--since <period>", "only what was called since then, such as 24h (default: everything)")
    .option("--expect-actors <n>", "how many actors the glob matches, where it is more than one")
    .option("--dry-run", "say what would be done, and do nothing")
    .option("--no-rollback", "undo nothing")
    .option("--compensator-cmd <cmd>", "runs a compensation, as for svc rollback")
    .option("--reader-cmd <cmd>", "runs a read-back, as for svc rollback")
    .option("--keys <file>", "API key file")
    .option("--as <name>", "who contains (default: cli)")
    .option("--json", "print the report as JSON")
    .action(async (flags: Flags) => {
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

async function containBy(context: Context, door: Door, flags: Flags): Promise<void> {
  const { io } = context;
  const text = (name: string) => flags[name] as string | undefined;
  const answer = await door.perform(contain, {
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
  if (!report.complete) context.done(ATTENTION);
}

/** The data's own process undoes with commands or through upstreams, and edits the key file that the settings name. */
function equipped(app: App, work: () => Promise<void>): Promise<void> {
  app.jobTools = commandTools(app.settings, app.background.signal);
  const path = keyFileOf(app.settings);
  if (path !== null) app.keys = new KeyManager(path, { env: app.core.env });
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void app.close().finally(() => process.exit(1)));
  return undoingThroughUpstreams(app, work);
}

function readCount(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(given))
    throw invalid(`--expect-actors: ${printable(given)} is not a whole number`);
  return Number(given);
}

/** Waits for the end. On local data it also takes the work over from a process that died. */
async function reportOf(door: Door, id: string, tell: (text: string) => void): Promise<ContainReport> {
  tell(`containment ${id}: the halt is in force`);
  for (let looks = 0; ; looks++) {
    const { job } = await door.perform(getContain, { contain_id: id });
    if (job.state === "done") return job.report as ContainReport;
    if (job.state === "failed") throw conflict("job_failed", `the containment broke off: ${job.error}`);
    if (door.local !== null && looks > 0) await carryOn(door.local, id, undefined);
    await door.clock.sleep(LOOK_MS);
  }
}

function describeContainment(report: ContainReport, dry: boolean, color: Paint): string[] {
  const verb = (done: string, would: string) => (dry ? would : done);
  const { halt, keys, requests, revoked, wider, runs, bundles, actors } = report;
  const lines = [
    `${verb("contained", "would contain")}: ${actors.map(printable).join(", ")}`,
    halt.was_there ? `  halted already (${halt.id})` : `  ${verb(`halted (${halt.id})`, "would be halted")}`,
  ];
  const list = (what: string, ids: readonly string[]) => {
    if (ids.length > 0) lines.push(`  ${what}: ${ids.map(printable).join(", ")}`);
  };
  list(
    verb("keys disabled", "keys to disable"),
    keys.disabled.map(({ name, fingerprint }) => `${name} (${fingerprint})`),
  );
  for (const { name, fingerprint, why } of keys.left)
    lines.push(`  key left: ${printable(name)} (${fingerprint}) ${why}`);
  if (keys.note !== null) lines.push(`  keys: ${printable(keys.note)}`);
  list(verb("requests denied", "requests to deny"), requests.denied);
  list("approved before and unused", requests.approved);
  list(verb("plans revoked", "plans to revoke"), revoked.plans);
  list(verb("delegations revoked", "delegations to revoke"), revoked.delegations);
  list(verb("grants revoked", "grants to revoke"), revoked.grants);
  for (const { kind, id, covers } of wider) lines.push(`  wider ${kind} left: ${id} (${printable(covers)})`);
  for (const run of runs) lines.push(...describeRun(run, dry));
  if (bundles.folder !== null) lines.push(`  bundles: ${printable(bundles.folder)}`);
  if (bundles.note !== null) lines.push(`  ${printable(bundles.note)}`);
  const undone = `${plural(report.undone, "step", "steps")} ${verb("undone", "to undo")}`;
  const left = report.complete ? color.green("nothing left") : color.yellow(`${report.left} left`);
  return [...lines, `${undone}, ${left}`];
}

function describeRun(run: RunContainment, dry: boolean): string[] {
  const lines = [`  run ${run.run_id} (${printable(run.actor)})`];
  if (run.undone.length > 0)
    lines.push(
      `    ${dry ? "to undo" : "undone"}: ${run.undone.map(({ step, tool }) => `${step} ${printable(tool)}`).join(", ")}`,
    );
  for (const { step, tool, why } of run.cannot)
    lines.push(`    not undone: ${step} ${printable(tool)}: ${printable(why)}`);
  for (const { step, tool, why } of run.unknown)
    lines.push(`    unknown: ${step} ${printable(tool)}: ${printable(why)}`);
  if (run.error !== null) lines.push(`    error: ${printable(run.error)}`);
  return lines;
}
