/** `svc simulate --policy <file or versions folder>`: exits 2 when something would be newly blocked. */
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SIMULATION_PERIOD } from "../../app/operations/simulate/jobs.ts";
import { simulate as simulateOp } from "../../app/operations/simulate.ts";
import type { PolicyText } from "../../app/sandbox/job.ts";
import { readTextFile } from "../../config/files.ts";
import { parseSince } from "../../kernel/duration.ts";
import { invalid, ProblemsError, SvcError } from "../../kernel/errors.ts";
import { compareVersions } from "../../model/manifest/version.ts";
import type { ChangeName, ReviewLine } from "../../sandbox/review.ts";
import type { SimulatedCall, SimulationReport } from "../../sandbox/simulate.ts";
import { ATTENTION, globalOptions, type Register } from "../context.ts";
import { columnsOf, count, fitted, some } from "../fit.ts";
import { columns, type Io, type Paint, printable } from "../io.ts";
import { nothingCaptured } from "./capture.ts";

export const registerSimulate: Register = (program, context) => {
  const { io } = context;
  globalOptions(
    program.command("simulate").description("judge the captured calls again under a policy; changes nothing"),
  )
    .option(
      "--policy <path>",
      "a policy file, or a folder of versions (its newest); the one in force otherwise",
    )
    .option("--since <period>", "how far back to look: a period such as 2d, or a date", SIMULATION_PERIOD)
    .option("--run <id>", "only the calls of this run")
    .option("--json", "print the report as JSON")
    .action(async (flags: Record<string, string>) => {
      const policy = flags["policy"] === undefined ? null : await readPolicy(io, flags["policy"]);
      await context.withDoor(flags, async (door) => {
        const since = flags["since"]!;
        const from_ms = parseSince(since, door.clock.now(), "--since");
        const input = { policy: policy?.text, since, run_id: flags["run"] };
        const report = (await naming(policy, door.perform(simulateOp, input))).read();
        if (flags["json"]) io.out(JSON.stringify(report, null, 2));
        else {
          const title = policy?.file ?? "the policy in force";
          for (const line of describeSimulation(report, `${title}, since ${day(from_ms)}`, io)) io.out(line);
          if (report.summary.calls === 0) io.err(nothingCaptured(door.local));
        }
        if (report.summary.newly_blocked > 0) context.done(ATTENTION);
      });
    });
};

/** Problems of a policy that was sent along are told under the name of the file that it came from. */
export async function naming<T>(policy: PolicyText | null, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (policy === null || !(error instanceof SvcError)) throw error;
    const told = error.message.split("\n").map((line) => line.replace(/^policy(?=:)/, policy.file));
    throw told.length === 1 ? new SvcError(error.code, told[0]!) : new ProblemsError(told);
  }
}

/** A policy file, or the newest version of a folder: the one that a person is about to activate. */
export async function readPolicy({ cwd }: Io, path: string): Promise<PolicyText> {
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
  if (newest === undefined) throw invalid(`${folder}: holds no policy version such as 3.yaml`);
  return newest.name;
}

const WORDS: Record<ChangeName, { one: string; many: string; paint: keyof Paint }> = {
  newly_blocked: { one: "newly blocked", many: "newly blocked", paint: "red" },
  newly_needs_approval: { one: "newly needs approval", many: "newly need approval", paint: "yellow" },
  newly_allowed: { one: "newly allowed", many: "newly allowed", paint: "green" },
};
const SHOWN_CHANGES = 20;
const SHOWN_CALLS = 20;

function describeSimulation(report: SimulationReport, title: string, io: Io): string[] {
  const { summary, changes, notes } = report;
  const width = columnsOf(io);
  const lines = [
    fitted(`${title}: ${count(summary.calls, "captured call")} in ${count(summary.runs, "run")}`, width),
    ...changes.slice(0, SHOWN_CHANGES).flatMap((line) => reviewed(line, width, io.color)),
  ];
  if (changes.length > SHOWN_CHANGES)
    lines.push(`and ${changes.length - SHOWN_CHANGES} more kinds of change`);
  lines.push(`${count(summary.unchanged, "call")} unchanged`);
  const calls = [...report.newly_blocked, ...report.newly_needs_approval, ...report.newly_allowed];
  if (calls.length > 0) lines.push("", ...callTable(calls, width, io.color));
  const changed = summary.newly_blocked + summary.newly_needs_approval + summary.newly_allowed;
  if (changed > SHOWN_CALLS) lines.push(io.color.dim(`  and ${changed - SHOWN_CALLS} more; see --json`));
  for (const note of notes) lines.push(fitted(`note: ${note}`, width));
  return lines;
}

/** `12 calls newly blocked by rule big-refunds, in 3 runs: a, b, c`, and under it the tools and the reason. */
function reviewed(line: ReviewLine, width: number, color: Paint): string[] {
  const { change, by, calls, runs, run_ids, tools, reason } = line;
  const words = WORDS[change];
  const said = calls === 1 ? words.one : words.many;
  const cause = change === "newly_allowed" || by.length === 0 ? "" : ` by ${by.map(printable).join(" and ")}`;
  const head = `${count(calls, "call")} ${said}${cause}, in ${count(runs, "run")}: ${some(run_ids, runs)}`;
  const why = reason === null ? "" : `${change === "newly_allowed" ? "was: " : ""}${reason}`;
  const below = [tools.map(printable).join(", "), why].filter((part) => part !== "").join(": ");
  return [color[words.paint](fitted(head, width)), color.dim(`    ${fitted(below, width - 4)}`)];
}

function callTable(calls: readonly SimulatedCall[], width: number, color: Paint): string[] {
  const rows = calls
    .slice(0, SHOWN_CALLS)
    .map((call) => [
      `  ${printable(call.run_id)}`,
      call.step === null ? "-" : String(call.step),
      printable(call.tool),
      call.old.decision,
      "->",
      call.new.decision,
      (call.new.decision === "allow" ? call.old.reasons : call.new.reasons).map(printable).join("; "),
    ]);
  const [head, ...rest] = columns([["  run", "step", "tool", "was", "", "now", "why"], ...rows]);
  return [color.dim(fitted(head!, width)), ...rest.map((line) => fitted(line, width))];
}

function day(ms: number): string {
  return new Date(ms).toISOString().replace(/:\d\d\.\d{3}Z$/, "Z");
}
