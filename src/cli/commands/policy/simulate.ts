/**
 * `svc simulate --policy <file or versions directory>`: evaluates captured calls under a policy. Exits with 2 if any
 * would be newly blocked.
 */
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readTextFile } from "../../../config/files.ts";
import { parseSince } from "../../../kernel/duration.ts";
import { invalidError, ProblemsError, SvcError } from "../../../kernel/errors.ts";
import { SIMULATION_PERIOD } from "../../../operations/simulate/jobs.ts";
import { simulatePolicy as simulateOp } from "../../../operations/simulate/simulate.ts";
import type { PolicyText } from "../../../operations/worker/job.ts";
import { compareVersions } from "../../../rules/manifest/version.ts";
import type { ChangeName, ReviewLine } from "../../../simulate/review.ts";
import type { SimulatedCall, SimulationReport } from "../../../simulate/simulate.ts";
import { EXIT_NEEDS_ATTENTION, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls, type PaintColors } from "../../io.ts";
import { formatCount, joinWithMore, terminalWidth, truncateLine } from "../../truncate.ts";
import { noCapturesText } from "../retention/capture.ts";

export const registerSimulate: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("simulate").description("Test a policy on captured calls"))
    .option("--policy <path>", "policy file, or a directory of versions (default: the active policy)")
    .option("--since <period>", "how far back to look: a period such as 2d, or a date", SIMULATION_PERIOD)
    .option("--run <id>", "only calls of this run")
    .option("--json", "print the report as JSON")
    .action(async (flags: Record<string, string>) => {
      const policy = flags["policy"] === undefined ? null : await readPolicy(io, flags["policy"]);
      await context.withDoor(flags, async (door) => {
        const since = flags["since"]!;
        const from_ms = parseSince(since, door.clock.now(), "--since");
        const input = { policy: policy?.text, since, run_id: flags["run"] };
        const report = (await withPolicyFileName(policy, door.perform(simulateOp, input))).read();
        if (flags["json"]) io.out(JSON.stringify(report, null, 2));
        else {
          const title = policy?.file ?? "the active policy";
          for (const line of describeSimulation(report, `${title}, since ${day(from_ms)}`, io)) io.out(line);
          if (report.summary.calls === 0) io.err(noCapturesText(door.local));
        }
        if (report.summary.newly_blocked > 0) context.done(EXIT_NEEDS_ATTENTION);
      });
    });
};

/** Replaces `policy` in error messages with the name of the policy's file. */
export async function withPolicyFileName<T>(policy: PolicyText | null, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (policy === null || !(error instanceof SvcError)) throw error;
    const problems = error.message.split("\n").map((line) => line.replace(/^policy(?=:)/, policy.file));
    throw problems.length === 1 ? new SvcError(error.code, problems[0]!) : new ProblemsError(problems);
  }
}

/** Reads a policy file, or the newest version in a directory. */
export async function readPolicy({ cwd }: CommandIo, path: string): Promise<PolicyText> {
  const folder = await stat(resolve(cwd, path)).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const file = folder ? join(path, await newestVersion(resolve(cwd, path))) : path;
  return { text: await readTextFile(resolve(cwd, file)), file };
}

const VERSION_FILE = /^(?:.*[^\d.])?(\d+(?:\.\d+)*)\.ya?ml$/;

async function newestVersion(folder: string): Promise<string> {
  let newest: { name: string; version: string } | undefined;
  for (const name of (await readdir(folder)).sort()) {
    const version = VERSION_FILE.exec(name)?.[1];
    if (version === undefined) continue;
    if (newest === undefined || compareVersions(version, newest.version) > 0) newest = { name, version };
  }
  if (newest === undefined) throw invalidError(`${folder}: contains no policy version such as 3.yaml`);
  return newest.name;
}

const WORDS: Record<ChangeName, { one: string; many: string; paint: keyof PaintColors }> = {
  newly_blocked: { one: "newly blocked", many: "newly blocked", paint: "red" },
  newly_needs_approval: { one: "newly needs approval", many: "newly need approval", paint: "yellow" },
  newly_allowed: { one: "newly allowed", many: "newly allowed", paint: "green" },
};
const SHOWN_CHANGES = 20;
const SHOWN_CALLS = 20;

function describeSimulation(report: SimulationReport, title: string, io: CommandIo): string[] {
  const { summary, changes, notes } = report;
  const width = terminalWidth(io);
  const lines = [
    truncateLine(
      `${title}: ${formatCount(summary.calls, "captured call")} in ${formatCount(summary.runs, "run")}`,
      width,
    ),
    ...changes.slice(0, SHOWN_CHANGES).flatMap((line) => reviewed(line, width, io.color)),
  ];
  if (changes.length > SHOWN_CHANGES)
    lines.push(`and ${changes.length - SHOWN_CHANGES} more kinds of change`);
  lines.push(`${formatCount(summary.unchanged, "call")} unchanged`);
  const calls = [...report.newly_blocked, ...report.newly_needs_approval, ...report.newly_allowed];
  if (calls.length > 0) lines.push("", ...callTable(calls, width, io.color));
  const changed = summary.newly_blocked + summary.newly_needs_approval + summary.newly_allowed;
  if (changed > SHOWN_CALLS) lines.push(io.color.dim(`  and ${changed - SHOWN_CALLS} more; see --json`));
  for (const note of notes) lines.push(truncateLine(`note: ${note}`, width));
  return lines;
}

/**
 * Lines such as `12 calls newly blocked by rule big-refunds, in 3 runs: a, b, c`, with the tools and the reason below.
 */
function reviewed(line: ReviewLine, width: number, color: PaintColors): string[] {
  const { change, by, calls, runs, run_ids, tools, reason } = line;
  const words = WORDS[change];
  const said = calls === 1 ? words.one : words.many;
  const cause =
    change === "newly_allowed" || by.length === 0 ? "" : ` by ${by.map(escapeControls).join(" and ")}`;
  const head = `${formatCount(calls, "call")} ${said}${cause}, in ${formatCount(runs, "run")}: ${joinWithMore(run_ids, runs)}`;
  const why = reason === null ? "" : `${change === "newly_allowed" ? "was: " : ""}${reason}`;
  const below = [tools.map(escapeControls).join(", "), why].filter((part) => part !== "").join(": ");
  return [color[words.paint](truncateLine(head, width)), color.dim(`    ${truncateLine(below, width - 4)}`)];
}

function callTable(calls: readonly SimulatedCall[], width: number, color: PaintColors): string[] {
  const rows = calls
    .slice(0, SHOWN_CALLS)
    .map((call) => [
      `  ${escapeControls(call.run_id)}`,
      call.step === null ? "-" : String(call.step),
      escapeControls(call.tool),
      call.old.decision,
      "->",
      call.new.decision,
      (call.new.decision === "allow" ? call.old.reasons : call.new.reasons).map(escapeControls).join("; "),
    ]);
  const [head, ...rest] = alignColumns([["  run", "step", "tool", "was", "", "now", "why"], ...rows]);
  return [color.dim(truncateLine(head!, width)), ...rest.map((line) => truncateLine(line, width))];
}

function day(ms: number): string {
  return new Date(ms).toISOString().replace(/:\d\d\.\d{3}Z$/, "Z");
}
