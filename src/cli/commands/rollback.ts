/** `svc rollback <run>`: undoes the standing steps of a run. Exits 2 when anything is left. */
import { readRun } from "../../app/access.ts";
import { checkOverwrite } from "../../app/lookout.ts";
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { compensatorCommand, readerCommand, verifyCommand } from "../../process/rollback-commands.ts";
import { executeRollback, type RollbackOptions, type RollbackProgress } from "../../rollback/execute.ts";
import type { Overwrite } from "../../rollback/ports.ts";
import type { RollbackReport } from "../../rollback/report.ts";
import { ATTENTION, type Context, globalOptions, type Register } from "../context.ts";
import { type Io, inert } from "../io.ts";

export const registerRollback: Register = (program, context) => {
  const { min, max } = LIMITS.rollback_retries;
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
    .option("--retries <n>", `attempts in all for each compensation, ${min} to ${max}`)
    .option("--approve-compensations", "approve every compensation that needs approval")
    .option("--overwrite <step>", "undo this step although what is there was changed since the call")
    .option("--current <hash>", "the current_hash that svc plan shows for it")
    .option("--reason <text>", "why it is overwritten")
    .option("--actor <name>", "who rolls back (default: cli)")
    .option("--json", "print the report as JSON")
    .action(async (run: string, flags: Record<string, unknown>) => {
      const options = rollbackOptions(context, flags);
      await context.withApp(flags, async (app) => {
        await readRun(app, run);
        const { overwrite, reader } = options;
        if (overwrite !== undefined) await checkOverwrite(app, run, overwrite, reader ? { reader } : null);
        const report = await executeRollback(app.core, run, options);
        if (flags["json"]) context.io.out(JSON.stringify(report, null, 2));
        else for (const line of describeReport(run, report)) context.io.out(line);
        if (!report.complete) context.done(ATTENTION);
      });
    });
};

function rollbackOptions({ io, settings }: Context, flags: Record<string, unknown>): RollbackOptions {
  const { compensator_cmd, reader_cmd, timeout_ms } = settings(flags, [
    "compensatorCmd",
    "readerCmd",
  ]).rollback;
  if (compensator_cmd === null)
    throw invalid("how are steps undone? give --compensator-cmd <cmd>, or set SVC_COMPENSATOR_CMD");
  const verify = flags["verifyCmd"] as string | undefined;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  return {
    actor: (flags["actor"] as string | undefined) ?? "cli",
    compensator: compensatorCommand(compensator_cmd, { timeout_ms }),
    reader: reader_cmd === null ? null : readerCommand(reader_cmd, {}),
    own_reader: true,
    verify: verify === undefined ? null : verifyCommand(verify, {}),
    retries: readRetries(flags["retries"] as string | undefined),
    approve_compensations: flags["approveCompensations"] === true,
    overwrite: readOverwrite(flags as Record<string, string | undefined>),
    stop: stop.signal,
    onProgress: io.tty && !flags["json"] ? (progress) => io.err(describeProgress(progress, io)) : undefined,
  };
}

function readOverwrite(flags: Record<string, string | undefined>): Overwrite | undefined {
  const { overwrite: step, current, reason } = flags;
  if (step === undefined) {
    if (current !== undefined || reason !== undefined)
      throw invalid("--overwrite: which step? --current and --reason are for the one that is overwritten");
    return undefined;
  }
  if (!/^\d{1,15}$/.test(step)) throw invalid(`--overwrite: ${inert(step)} is not a step number`);
  if (!reason?.trim()) throw invalid("--reason: is required to overwrite what was written since: say why");
  if (reason.length > LIMITS.reason_chars)
    throw invalid(`--reason: at most ${LIMITS.reason_chars} characters`);
  if (!current)
    throw invalid(
      "--current: is required to overwrite: give the current_hash that svc plan shows for the step",
    );
  return { step: Number(step), reason, current_hash: current };
}

function readRetries(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const { min, max } = LIMITS.rollback_retries;
  const n = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(n >= min && n <= max))
    throw invalid(`--retries: ${inert(text)} is not a whole number from ${min} to ${max}`);
  return n;
}

function describeProgress(progress: RollbackProgress, { color }: Io): string {
  const step = `step ${progress.step} ${inert(progress.tool)}`;
  switch (progress.event) {
    case "begin":
      return color.dim(`${step}: ${inert(progress.compensation_tool)} ...`);
    case "attempt_failed":
      return color.yellow(`${step}: attempt ${progress.attempt} failed: ${inert(progress.error)}`);
    case "end":
      return `${step}: ${progress.outcome.as === "compensated" ? color.green("compensated") : progress.outcome.as}`;
  }
}

export function describeReport(run: string, report: RollbackReport): string[] {
  const lines = [`run ${run}: rollback ${report.complete ? "complete" : "not complete"}`];
  const list = (name: string, steps: readonly number[]) => {
    if (steps.length > 0) lines.push(`  ${name}: ${steps.join(", ")}`);
  };
  list("compensated", report.compensated);
  list("skipped", report.skipped);
  for (const { step, error } of report.failed) lines.push(`  failed: ${step}: ${inert(error)}`);
  list("unrecoverable", report.unrecoverable);
  list("unresolved", report.unresolved);
  list("unmanifested", report.unmanifested);
  for (const { step, blocked_by } of report.deferred)
    lines.push(`  deferred: ${step} (waits for ${blocked_by.join(", ")})`);
  list("awaiting_approval", report.awaiting_approval);
  list("unverified", report.unverified);
  return lines;
}
