/** `svc replay <run> --set <path>=<value>`: replays a captured run unchanged and with changes. */
import { invalidError } from "../../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../../kernel/json/json.ts";
import { tryPath } from "../../../kernel/paths.ts";
import { replayCapturedRun as replayOp } from "../../../operations/runs/replay.ts";
import type { RollbackPlan } from "../../../rollback/plan/plan.ts";
import type { ReplayChange } from "../../../simulate/changes.ts";
import type { ReplayReport } from "../../../simulate/replay.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import { formatCount, terminalWidth, truncateLine } from "../../truncate.ts";
import { readPolicy, withPolicyFileName } from "./simulate.ts";

export const registerReplay: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("replay <run>").description("Replay a captured run with changes"))
    .option(
      "--set <path=value>",
      "a change: <path>=<value> in every call, <step>.<path>=<value>, or tool:<tool>/<path>=<value>",
      (text: string, all: string[]) => [...all, text],
      [],
    )
    .option("--policy <file>", "replay the changed run under this policy")
    .option("--json", "print the report as JSON")
    .action(async (run_id: string, flags: Record<string, unknown>) => {
      const changes = (flags["set"] as string[]).map(parseSet);
      const file = flags["policy"] as string | undefined;
      if (changes.length === 0 && file === undefined)
        throw invalidError("no change given: pass --set <path>=<value> or --policy <file>");
      const policy = file === undefined ? null : await readPolicy(io, file);
      await context.withDoor(flags, async (door) => {
        const input = {
          run_id,
          policy: policy?.text,
          changes: changes.map((change) => ({
            ...change,
            value: change.value as NonNullable<JsonValue> | null,
          })),
        };
        const report = (await withPolicyFileName(policy, door.perform(replayOp, input))).read();
        if (flags["json"]) io.out(JSON.stringify(report, null, 2));
        else for (const line of describeReplay(run_id, report, io)) io.out(line);
      });
    });
};

/** Parses the three forms of `--set`. A path may omit `$args`: `amount` means `$args.amount`. */
export function parseSet(source: string): ReplayChange {
  const equals = valueStart(source);
  if (equals < 0) throw invalidError(`--set ${source}: write <path>=<value>, such as $args.amount=20`);
  const { step, tool, path } = target(source.slice(0, equals));
  const full = path.startsWith("$") ? path : `$args${/^[.[]/.test(path) ? "" : "."}${path}`;
  if (tryPath(full) === undefined)
    throw invalidError(
      `--set ${source}: ${path} is not a path; write $args.name, $args["any name"] or $args.list[0]`,
    );
  return { step, tool, path: full, value: parseValue(source, source.slice(equals + 1)) };
}

/** Index of the first `=` outside a quoted name. */
function valueStart(source: string): number {
  let quoted = false;
  for (let i = 0; i < source.length; i++) {
    if (source[i] === "\\") i++;
    else if (source[i] === '"') quoted = !quoted;
    else if (source[i] === "=" && !quoted) return i;
  }
  return -1;
}

function target(left: string): { step: number | null; tool: string | null; path: string } {
  if (left.startsWith("tool:")) {
    const marked = left.search(/\/\$(?:args|result)(?:$|[.[])/);
    const slash = marked >= 0 ? marked : left.lastIndexOf("/");
    if (slash <= "tool:".length) throw invalidError(`--set ${left}: write tool:<tool>/<path>=<value>`);
    return { step: null, tool: left.slice("tool:".length, slash), path: left.slice(slash + 1) };
  }
  const [, step, path] = /^(\d{1,15})\.(.+)$/.exec(left) ?? [];
  if (step !== undefined) return { step: Number(step), tool: null, path: path! };
  return { step: null, tool: null, path: left };
}

/** Parses JSON or a plain word. Text that begins like JSON must be valid JSON. */
function parseValue(source: string, text: string): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    if (/^\s*[{["]/.test(text)) throw invalidError(`--set ${source}: ${(error as Error).message}`);
    return text;
  }
}

function describeReplay(run_id: string, report: ReplayReport, io: CommandIo): string[] {
  const { color } = io;
  const width = terminalWidth(io);
  const { baseline, variant, differences } = report;
  const changed = variant.filter((call) => call.changed).length;
  const head = `run ${run_id}: ${formatCount(baseline.length, "call")}, ${changed} changed, ${formatCount(differences.length, "difference")}`;
  const rows = differences.map((one) => [
    `  ${one.step === null ? "-" : one.step}`,
    escapeControls(one.tool),
    `${one.baseline.decision} -> ${one.variant.decision}`,
    one.baseline.undo === one.variant.undo
      ? ""
      : `undo ${one.baseline.undo ?? "none"} -> ${one.variant.undo ?? "none"}`,
    one.variant.reasons.map(escapeControls).join("; "),
  ]);
  const plans = (["baseline", "variant"] as const).map((name) => planLine(name, report[`${name}_plan`]));
  const notes = new Set([...baseline, ...variant].flatMap((call) => call.notes));
  return [
    truncateLine(head, width),
    ...alignColumns([["  step", "tool", "decision", "", ""], ...rows])
      .slice(rows.length === 0 ? 1 : 0)
      .map((line) => truncateLine(line, width)),
    ...plans,
    ...[...notes].map((note) => color.dim(truncateLine(`note: ${note}`, width))),
  ];
}

function planLine(name: string, { actions, fully_reversible }: RollbackPlan): string {
  const counts = new Map<string, number>();
  for (const { kind } of actions) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const summary = [...counts].map(([kind, n]) => `${n} ${kind}`).join(", ");
  const verdict = fully_reversible ? "fully reversible" : "not fully reversible";
  return `${name} rollback: ${verdict}${summary === "" ? "" : ` (${summary})`}`;
}
