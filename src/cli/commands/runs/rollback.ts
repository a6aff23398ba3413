/**
 * `svc rollback <run>`: undoes a run's steps, with commands, through the configured upstreams, or on a server. If any
 * step remains, prints the next commands and exits with 2.
 */
import { resolve } from "node:path";
import {
  compensatorCommand,
  readerCommand,
  verifyCommand,
} from "../../../child-process/rollback-commands.ts";
import { OVERWRITE_TARGETS } from "../../../govern/port/docs.ts";
import { conflictError, invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { ServiceApp } from "../../../operations/app.ts";
import { getRollback, rollbackHere, startRollback } from "../../../operations/rollback/rollback.ts";
import { getRun } from "../../../operations/runs/runs.ts";
import { guardedUndo } from "../../../operations/signing/approvers-guard.ts";
import type { ChosenStep } from "../../../rollback/cascade/roll-back-with.ts";
import { hasConflict } from "../../../rollback/plan/plan.ts";
import type { RollbackReport, TreeReport } from "../../../rollback/plan/report.ts";
import type { RollbackProgress, UndoToolOptions } from "../../../rollback/undo/execute.ts";
import { hasHttpTools, withHttpUndos } from "../../../service/start/http-undo.ts";
import { textOrAnswer } from "../../ask-missing.ts";
import {
  type CommandContext,
  type CommandFlags,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import { localClient } from "../../operation-client.ts";
import { namedStep, stepLines } from "../../step-lines.ts";
import { withUpstreams } from "../../upstreams.ts";
import { conflictStates, previewedPlan } from "./plan.ts";

export const registerRollback: RegisterCommand = (program, context) => {
  const { min, max, default: usual } = SERVICE_LIMITS.rollback_retries;
  globalOptions(program.command("rollback <run>").description("Undo the steps of a run, newest first"))
    .option(
      "--compensator-cmd <cmd>",
      "command that runs each undo: receives the call as JSON on stdin; exit 0 means success",
    )
    .option(
      "--reader-cmd <cmd>",
      "command that reads state: receives {tool, arguments} on stdin, prints the JSON result",
    )
    .option(
      "--verify-cmd <cmd>",
      "extra check after each undo: receives the same JSON as the compensator; exit 0 means success",
    )
    .option("--retries <n>", `attempts per step, ${min} to ${max} (default: ${usual})`)
    .option("--approve-compensations", "approve every undo that requires approval")
    .option("--children", "undo all runs below it too, newest step first")
    .option(
      "--with <run/step>",
      "step of another run to undo too, as svc plan --with-dependents lists it; can be repeated",
      collectSteps,
    )
    .option("--overwrite <step>", "undo this step even though its target has changed since")
    .option(
      "--to <state>",
      `state that the overwrite restores: ${OVERWRITE_TARGETS.join(" (default) or ")}, the state before this run changed it`,
    )
    .option("--current <hash>", "current_hash of the step, from svc plan")
    .option("--reason <text>", "reason for the overwrite")
    .option("--skip <path>", "file or directory that no undo touches; can be repeated", collectPaths)
    .option("--actor <name>", "who rolls back (default: cli)")
    .option("--json", "print the report as JSON")
    .action(async (run: string, given: CommandFlags) => {
      const flags = { ...given, ...(await askedOverwrite(context, run, given)) };
      const report = context.isRemote(flags)
        ? await onServer(context, run, flags)
        : await onData(context, run, flags);
      const lines = flags["json"] ? new Map() : await linesOf(context, run, report, flags);
      if (flags["json"]) context.io.out(JSON.stringify(report, null, 2));
      else
        for (const one of [{ run_id: run, ...report }, ...(report.children ?? []), ...(report.with ?? [])])
          for (const line of describeReport(one, lines.get(one.run_id) ?? NO_LINES)) context.io.out(line);
      if (!report.complete) context.done(EXIT_NEEDS_ATTENTION);
    });
};

/** What an overwrite still needs, from the person at the terminal, who sees the conflict as `svc plan` shows it. */
async function askedOverwrite(
  context: CommandContext,
  run: string,
  { overwrite, current, reason, ...flags }: CommandFlags,
): Promise<CommandFlags> {
  const { io } = context;
  if (overwrite === undefined || io.ask === undefined) return {};
  if (current !== undefined && reason !== undefined) return {};
  const { actions } = await previewedPlan(context, run, flags);
  const action = actions.find(({ step }) => step === Number(overwrite));
  if (action === undefined || !hasConflict(action))
    throw invalidError(`--overwrite: step ${overwrite} is not in conflict; run svc rollback ${run}`);
  for (const line of conflictStates(action)) io.out(line);
  const why = await textOrAnswer(io, reason as string | undefined, {
    option: "--reason <text>",
    question: "Why do you overwrite the present state? It is recorded",
  });
  return { current: current ?? action.current_hash, reason: why };
}

/** Report of the run itself, or of a run below it. */
type RunReport = TreeReport & { run_id: string; error?: string };

const NO_LINES: ReadonlyMap<number, string> = new Map();

/** Sentences on the steps of each run that the report covers. */
async function linesOf(
  context: CommandContext,
  run: string,
  { children = [], with: others = [] }: TreeReport,
  flags: CommandFlags,
): Promise<Map<string, ReadonlyMap<number, string>>> {
  const lines = new Map<string, ReadonlyMap<number, string>>();
  await context.withDoor(flags, async (door) => {
    for (const run_id of [run, ...[...children, ...others].map((other) => other.run_id)])
      lines.set(run_id, stepLines((await door.perform(getRun, { run_id })).steps));
  });
  return lines;
}

const LOOK_MS = 200;

/** A step as `run/step`. */
function collectSteps(text: string, others: ChosenStep[] = []): ChosenStep[] {
  const [, run_id, step] = /^(.+)\/(\d{1,15})$/.exec(text) ?? [];
  if (run_id === undefined || step === undefined)
    throw invalidError(`--with: ${escapeControls(text)} is not a step, such as run-7/3`);
  return [...others, { run_id, step: Number(step) }];
}

const collectPaths = (path: string, others: string[] = []): string[] => [...others, resolve(path)];

/** Starts the rollback on the server, which uses its own compensator or upstreams, and waits for the end. */
async function onServer(context: CommandContext, run_id: string, flags: CommandFlags): Promise<TreeReport> {
  for (const [name, flag] of Object.entries(OWN_COMMANDS))
    if (flags[name] !== undefined) throw invalidError(`${flag}: a server uses its own command; omit it`);
  if (flags["actor"] !== undefined)
    throw invalidError("--actor: not available on a server, where the key identifies the actor");
  const input = rollbackInput(flags);
  return context.withDoor(flags, async (door) => {
    await door.perform(startRollback, { run_id, confirm: true, ...input });
    for (;;) {
      const { job } = await door.perform(getRollback, { run_id });
      if (job.state === "done") return job.report as TreeReport;
      if (job.state === "failed")
        throw conflictError("job_failed", `the rollback failed: ${job.error}; run it again to resume`);
      await door.clock.sleep(LOOK_MS);
    }
  });
}

const OWN_COMMANDS = {
  compensatorCmd: "--compensator-cmd",
  readerCmd: "--reader-cmd",
  verifyCmd: "--verify-cmd",
};

/** Rolls back local data, with the given or configured commands, else through the upstreams. */
async function onData(context: CommandContext, run: string, flags: CommandFlags): Promise<TreeReport> {
  const { rollback, upstreams } = context.settings(flags, ["compensatorCmd", "readerCmd"]);
  const { compensator_cmd, reader_cmd, timeout_ms } = rollback;
  const input = { run_id: run, ...rollbackInput(flags) };
  const undo = (app: ServiceApp, means: UndoToolOptions) =>
    withHttpUndos(app, means, (tools) =>
      localClient(app, flags["actor"] as string | undefined, tools).perform(rollbackHere, input),
    );
  const watching = watched(context, flags);
  const reader = reader_cmd === null ? null : readerCommand(reader_cmd, {});
  if (compensator_cmd !== null) {
    const command = compensatorCommand(compensator_cmd, { timeout_ms });
    return context.withApp(flags, (app) =>
      undo(app, { ...watching, compensator: guardedUndo(app, command), reader }),
    );
  }
  if (upstreams.length === 0) {
    const nobody = new Error("no way to call this tool is configured: set a compensator or upstreams");
    return context.withApp(flags, (app) => {
      if (!hasHttpTools(app))
        throw invalidError(
          "no way to undo steps: pass --compensator-cmd <cmd>, set SVC_COMPENSATOR_CMD, or configure upstreams",
        );
      return undo(app, { ...watching, compensator: () => Promise.reject(nobody), reader });
    });
  }
  return withUpstreams(context, flags, (service, { services: { undo: through } }) =>
    undo(service, { ...watching, ...through, ...(reader && { reader }) }),
  );
}

/** Input of the rollback, the same on local data and on a server. */
function rollbackInput(flags: CommandFlags) {
  return {
    retries: readRetries(flags["retries"] as string | undefined),
    approve_compensations: flags["approveCompensations"] === true,
    ...(flags["skip"] === undefined ? {} : { skip: flags["skip"] as string[] }),
    ...(flags["children"] === true ? { children: true } : {}),
    ...(flags["with"] === undefined ? {} : { with: flags["with"] as ChosenStep[] }),
    ...readOverwrite(flags as Record<string, string | undefined>),
  };
}

function watched({ io }: CommandContext, flags: CommandFlags): Omit<UndoToolOptions, "compensator"> {
  const verify = flags["verifyCmd"] as string | undefined;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  return {
    own_reader: true,
    verify: verify === undefined ? null : verifyCommand(verify, {}),
    stop: stop.signal,
    waiting: (ms) =>
      io.err(
        `waiting up to ${Math.ceil(ms / 1_000)} s: another process is rolling back this run, or was interrupted`,
      ),
    onProgress: io.tty && !flags["json"] ? (progress) => io.err(describeProgress(progress, io)) : undefined,
  };
}

function readOverwrite(flags: Record<string, string | undefined>) {
  const { overwrite: step, current, reason, to } = flags;
  if (step === undefined) {
    if (to !== undefined) throw invalidError("--to: requires --overwrite <step>");
    if (current !== undefined || reason !== undefined)
      throw invalidError("--overwrite: missing; --current and --reason belong to the step to overwrite");
    return {};
  }
  if (!/^\d{1,15}$/.test(step))
    throw invalidError(`--overwrite: ${escapeControls(step)} is not a step number`);
  if (!reason?.trim()) throw invalidError("--reason: required to overwrite a step");
  if (reason.length > SERVICE_LIMITS.reason_chars)
    throw invalidError(`--reason: at most ${SERVICE_LIMITS.reason_chars} characters`);
  if (!current)
    throw invalidError("--current: required to overwrite a step: pass its current_hash from svc plan");
  const target = OVERWRITE_TARGETS.find((one) => one === to);
  if (to !== undefined && target === undefined)
    throw invalidError(`--to: must be ${OVERWRITE_TARGETS.join(" or ")}, not ${escapeControls(to)}`);
  return { overwrite: Number(step), reason, current_hash: current, ...(target && { to: target }) };
}

function readRetries(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const { min, max } = SERVICE_LIMITS.rollback_retries;
  const n = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(n >= min && n <= max))
    throw invalidError(`--retries: ${escapeControls(text)} is not a whole number from ${min} to ${max}`);
  return n;
}

function describeProgress(progress: RollbackProgress, { color }: CommandIo): string {
  const where = progress.run_id === undefined ? "" : `run ${escapeControls(progress.run_id)}, `;
  const step = `${where}step ${progress.step} ${escapeControls(progress.tool)}`;
  switch (progress.event) {
    case "begin":
      return color.dim(`${step}: ${escapeControls(progress.compensation_tool)} ...`);
    case "attempt_failed":
      return color.yellow(`${step}: attempt ${progress.attempt} failed: ${escapeControls(progress.error)}`);
    case "end":
      return `${step}: ${progress.outcome.as === "compensated" ? color.green("compensated") : progress.outcome.as}`;
  }
}

function describeReport(
  { run_id, error, children, with: others, ...report }: RunReport,
  known: ReadonlyMap<number, string>,
): string[] {
  const run = escapeControls(run_id);
  const below = children === undefined ? "" : ` with ${formatCountOf(children.length, "run")} below`;
  const scope = others === undefined ? below : ` with steps of ${formatCountOf(others.length, "other run")}`;
  const lines = [`run ${run}: rollback${scope} ${report.complete ? "complete" : "not complete"}`];
  if (error !== undefined) lines.push(`  not rolled back: ${escapeControls(error)}`);
  const list = (name: string, steps: readonly number[]) => {
    if (steps.length > 0) lines.push(`  ${name}: ${steps.map((step) => namedStep(step, known)).join(", ")}`);
  };
  list("compensated", report.compensated);
  list("skipped", report.skipped);
  for (const { step, error, parts = [] } of report.failed) {
    lines.push(`  failed: ${namedStep(step, known)}: ${escapeControls(error)}`);
    for (const left of parts) lines.push(`    ${escapeControls(left.path)}: ${escapeControls(left.error)}`);
  }
  list("unrecoverable", report.unrecoverable);
  list("unresolved", report.unresolved);
  list("unmanifested", report.unmanifested);
  for (const { step, blocked_by } of report.deferred)
    lines.push(`  deferred: ${namedStep(step, known)} (waits for ${blocked_by.join(", ")})`);
  list("awaiting_approval", report.awaiting_approval);
  list("unverified", report.unverified);
  return [...lines, ...nextCommands(run, report)];
}

/** Suggests a command for each step that remains. */
function nextCommands(run: string, report: RollbackReport): string[] {
  const lines = report.unresolved.map((step) => `to resolve ${step}: svc resolve ${run} ${step}`);
  const failed = report.failed.filter(({ step, current_hash }) => {
    if (current_hash === undefined) return true;
    lines.push(`to overwrite ${step}: svc rollback ${run} --overwrite ${step} --current ${current_hash}`);
    return false;
  });
  if (report.awaiting_approval.length > 0)
    lines.push(`to approve: svc approvals list, or svc rollback ${run} --approve-compensations`);
  if (failed.length > 0) lines.push(`to try again: svc rollback ${run}`);
  if (report.unrecoverable.length + report.unmanifested.length + report.unverified.length > 0)
    lines.push(`to see what was done: svc show ${run}`);
  return lines;
}
