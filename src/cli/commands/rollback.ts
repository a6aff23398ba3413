/**
 * `svc rollback <run>`: undoes the standing steps of a run, by commands, through the configured upstreams, or on a
 * server. Exits 2 when anything is left, and says what to do about it.
 */
import type { App } from "../../app/app.ts";
import { getRollback, rollbackHere, startRollback } from "../../app/operations/rollback.ts";
import { conflict, invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { OVERWRITE_TARGETS } from "../../port/docs.ts";
import { compensatorCommand, readerCommand, verifyCommand } from "../../process/rollback-commands.ts";
import type { RollbackProgress, UndoMeans } from "../../rollback/execute.ts";
import type { RollbackReport } from "../../rollback/report.ts";
import { ATTENTION, type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { localDoor } from "../door.ts";
import { type Io, printable } from "../io.ts";
import { withUpstreams } from "../upstreams.ts";

export const registerRollback: Register = (program, context) => {
  const { min, max, default: usual } = LIMITS.rollback_retries;
  globalOptions(
    program.command("rollback <run>").description("undo the standing steps of a run, newest first"),
  )
    .option(
      "--compensator-cmd <cmd>",
      "runs a compensation: gets the call as JSON on stdin; exit 0 is success",
    )
    .option(
      "--reader-cmd <cmd>",
      "runs a read-back: gets {tool, arguments} on stdin, prints the tool's JSON result",
    )
    .option("--verify-cmd <cmd>", "checks each undo: gets the same JSON as the compensator; exit 0 confirms")
    .option("--retries <n>", `attempts in all for each compensation, ${min} to ${max} (default: ${usual})`)
    .option("--approve-compensations", "approve every compensation that needs approval")
    .option("--overwrite <step>", "undo this step although what is there was changed since the call")
    .option(
      "--to <state>",
      `what the overwrite restores: ${OVERWRITE_TARGETS.join(" (default) or ")}, the state before this run changed it`,
    )
    .option("--current <hash>", "the current_hash that svc plan shows for it")
    .option("--reason <text>", "why it is overwritten")
    .option("--actor <name>", "who rolls back (default: cli)")
    .option("--json", "print the report as JSON")
    .action(async (run: string, flags: Flags) => {
      const report = context.isRemote(flags)
        ? await onServer(context, run, flags)
        : await onData(context, run, flags);
      if (flags["json"]) context.io.out(JSON.stringify(report, null, 2));
      else for (const line of describeReport(run, report)) context.io.out(line);
      if (!report.complete) context.done(ATTENTION);
    });
};

const LOOK_MS = 200;

/** The server undoes with what it has: its compensator, or its upstreams. Here the work is only waited for. */
async function onServer(context: Context, run_id: string, flags: Flags): Promise<RollbackReport> {
  for (const [name, flag] of Object.entries(OWN_COMMANDS))
    if (flags[name] !== undefined) throw invalid(`${flag}: a server undoes with its own; leave it out`);
  if (flags["actor"] !== undefined) throw invalid("--actor: on a server the key says who acts");
  const input = rollbackInput(flags);
  return context.withDoor(flags, async (door) => {
    await door.perform(startRollback, { run_id, confirm: true, ...input });
    for (;;) {
      const { job } = await door.perform(getRollback, { run_id });
      if (job.state === "done") return job.report as RollbackReport;
      if (job.state === "failed")
        throw conflict("job_failed", `the rollback broke off: ${job.error}; run it again to go on`);
      await door.clock.sleep(LOOK_MS);
    }
  });
}

const OWN_COMMANDS = {
  compensatorCmd: "--compensator-cmd",
  readerCmd: "--reader-cmd",
  verifyCmd: "--verify-cmd",
};

/** By the commands that are given or configured, else through the upstreams. */
async function onData(context: Context, run: string, flags: Flags): Promise<RollbackReport> {
  const { rollback, upstreams } = context.settings(flags, ["compensatorCmd", "readerCmd"]);
  const { compensator_cmd, reader_cmd, timeout_ms } = rollback;
  const input = { run_id: run, ...rollbackInput(flags) };
  const undo = (app: App, means: UndoMeans) =>
    localDoor(app, flags["actor"] as string | undefined, means).perform(rollbackHere, input);
  const watching = watched(context, flags);
  const reader = reader_cmd === null ? null : readerCommand(reader_cmd, {});
  if (compensator_cmd !== null) {
    const compensator = compensatorCommand(compensator_cmd, { timeout_ms });
    return context.withApp(flags, (app) => undo(app, { ...watching, compensator, reader }));
  }
  if (upstreams.length === 0)
    throw invalid(
      "how are steps undone? give --compensator-cmd <cmd>, set SVC_COMPENSATOR_CMD, or configure upstreams",
    );
  return withUpstreams(context, flags, (service, { services: { undo: through } }) =>
    undo(service, { ...watching, ...through, ...(reader && { reader }) }),
  );
}

/** How far a rollback goes, here as on a server. */
function rollbackInput(flags: Flags) {
  return {
    retries: readRetries(flags["retries"] as string | undefined),
    approve_compensations: flags["approveCompensations"] === true,
    ...readOverwrite(flags as Record<string, string | undefined>),
  };
}

function watched({ io }: Context, flags: Flags): Omit<UndoMeans, "compensator"> {
  const verify = flags["verifyCmd"] as string | undefined;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  return {
    own_reader: true,
    verify: verify === undefined ? null : verifyCommand(verify, {}),
    stop: stop.signal,
    waiting: (ms) =>
      io.err(
        `waiting up to ${Math.ceil(ms / 1_000)} s: another process rolls the run back, or left that behind`,
      ),
    onProgress: io.tty && !flags["json"] ? (progress) => io.err(describeProgress(progress, io)) : undefined,
  };
}

function readOverwrite(flags: Record<string, string | undefined>) {
  const { overwrite: step, current, reason, to } = flags;
  if (step === undefined) {
    if (to !== undefined) throw invalid("--to: is for an overwrite; name the step with --overwrite <step>");
    if (current !== undefined || reason !== undefined)
      throw invalid("--overwrite: which step? --current and --reason are for the one that is overwritten");
    return {};
  }
  if (!/^\d{1,15}$/.test(step)) throw invalid(`--overwrite: ${printable(step)} is not a step number`);
  if (!reason?.trim()) throw invalid("--reason: is required to overwrite what was written since: say why");
  if (reason.length > LIMITS.reason_chars)
    throw invalid(`--reason: at most ${LIMITS.reason_chars} characters`);
  if (!current)
    throw invalid(
      "--current: is required to overwrite: give the current_hash that svc plan shows for the step",
    );
  const target = OVERWRITE_TARGETS.find((one) => one === to);
  if (to !== undefined && target === undefined)
    throw invalid(`--to: ${printable(to)} is neither ${OVERWRITE_TARGETS.join(" nor ")}`);
  return { overwrite: Number(step), reason, current_hash: current, ...(target && { to: target }) };
}

function readRetries(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const { min, max } = LIMITS.rollback_retries;
  const n = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(n >= min && n <= max))
    throw invalid(`--retries: ${printable(text)} is not a whole number from ${min} to ${max}`);
  return n;
}

function describeProgress(progress: RollbackProgress, { color }: Io): string {
  const step = `step ${progress.step} ${printable(progress.tool)}`;
  switch (progress.event) {
    case "begin":
      return color.dim(`${step}: ${printable(progress.compensation_tool)} ...`);
    case "attempt_failed":
      return color.yellow(`${step}: attempt ${progress.attempt} failed: ${printable(progress.error)}`);
    case "end":
      return `${step}: ${progress.outcome.as === "compensated" ? color.green("compensated") : progress.outcome.as}`;
  }
}

function describeReport(run: string, report: RollbackReport): string[] {
  const lines = [`run ${run}: rollback ${report.complete ? "complete" : "not complete"}`];
  const list = (name: string, steps: readonly number[]) => {
    if (steps.length > 0) lines.push(`  ${name}: ${steps.join(", ")}`);
  };
  list("compensated", report.compensated);
  list("skipped", report.skipped);
  for (const { step, error } of report.failed) lines.push(`  failed: ${step}: ${printable(error)}`);
  list("unrecoverable", report.unrecoverable);
  list("unresolved", report.unresolved);
  list("unmanifested", report.unmanifested);
  for (const { step, blocked_by } of report.deferred)
    lines.push(`  deferred: ${step} (waits for ${blocked_by.join(", ")})`);
  list("awaiting_approval", report.awaiting_approval);
  list("unverified", report.unverified);
  return [...lines, ...nextCommands(run, report)];
}

/** What a person could do now about each thing that is left. */
function nextCommands(run: string, report: RollbackReport): string[] {
  const lines = report.unresolved.map(
    (step) => `to settle ${step}: svc resolve ${run} ${step} --status succeeded|failed --note <how you know>`,
  );
  const failed = report.failed.filter(({ step, current_hash }) => {
    if (current_hash === undefined) return true;
    lines.push(
      `to overwrite ${step}: svc rollback ${run} --overwrite ${step} --current ${current_hash} --reason <text>`,
    );
    return false;
  });
  if (report.awaiting_approval.length > 0)
    lines.push(`to approve: svc approvals list, or svc rollback ${run} --approve-compensations`);
  if (failed.length > 0) lines.push(`to try again: svc rollback ${run}`);
  if (report.unrecoverable.length + report.unmanifested.length + report.unverified.length > 0)
    lines.push(`to see what was done: svc show ${run}`);
  return lines;
}
