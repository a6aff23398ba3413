/** `svc plan <run>`: previews a rollback. Exits with 2 if the run is not fully reversible. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { cutText } from "../../../kernel/text/truncate.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { getRollbackPlan as planOp } from "../../../operations/rollback/rollback.ts";
import { describeFile, fileStates } from "../../../rollback/plan/file-states.ts";
import {
  type CompensateAction,
  hasConflict,
  hasFailed,
  isUnread,
  type PlanAction,
  planVerdict,
  type RollbackPlan,
} from "../../../rollback/plan/plan.ts";
import {
  type CommandContext,
  type CommandFlags,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, escapeControls, type PaintColors } from "../../io.ts";
import { withUpstreamUndos } from "../../upstreams.ts";

export const registerPlan: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("plan <run>").description("Preview a rollback"))
    .option(
      "--reader-cmd <cmd>",
      "command that reads state: receives {tool, arguments} on stdin, prints JSON",
    )
    .option("--children", "include all runs below it")
    .option("--with-dependents", "list the calls of other runs that were built on it")
    .option("--json", "print the plan as JSON")
    .action(async (run: string, flags: Record<string, unknown>) => {
      const plan = await readPlan(context, run, flags);
      if (flags["json"]) io.out(JSON.stringify(plan, null, 2));
      else
        for (const one of [plan, ...(plan.children ?? [])])
          for (const line of describePlan(one as RollbackPlan, io.color)) io.out(line);
      if (!flags["json"] && plan.dependents !== undefined)
        for (const line of describeDependents(run, plan)) io.out(line);
      if (!plan.fully_reversible) context.done(EXIT_NEEDS_ATTENTION);
    });
};

function readPlan(
  context: CommandContext,
  run: string,
  flags: CommandFlags,
): Promise<ResponseOf<typeof planOp>> {
  return context.withDoor(
    flags,
    (door) => {
      const look = () =>
        door.perform(planOp, {
          run_id: run,
          ...(flags["children"] === true && { children: true }),
          ...(flags["withDependents"] === true && { dependents: true }),
        });
      return door.local === null ? look() : withUpstreamUndos(door.local, look);
    },
    ["readerCmd"],
  );
}

/** The plan of the run alone. */
export const previewedPlan = async (
  context: CommandContext,
  run: string,
  { children: _, withDependents: __, ...flags }: CommandFlags,
): Promise<RollbackPlan> => (await readPlan(context, run, flags)) as RollbackPlan;

const REASON_WORDS = {
  resource: "same resource as",
  dependency: "needs",
  stored: "read from the store of",
};

/** The calls that were built on the run, with the reasons, and the command that undoes them with it. */
function describeDependents(
  run: string,
  { dependents = [], dependents_cut }: ResponseOf<typeof planOp>,
): string[] {
  if (dependents.length === 0) return ["no call of another run was built on it"];
  const reason = ({ run_id, step, kind, path }: (typeof dependents)[number]["because"][number]) => {
    const from = `${escapeControls(run_id)}/${step}`;
    if (kind in REASON_WORDS) return `${REASON_WORDS[kind as keyof typeof REASON_WORDS]} ${from}`;
    return `${escapeControls(path ?? "")} holds ${kind} from ${from}`;
  };
  const rows = dependents.map((one) => [
    `  ${escapeControls(one.run_id)}/${one.step}`,
    escapeControls(one.tool),
    one.kind,
    one.because.map(reason).join("; "),
  ]);
  const undoable = dependents.filter(({ kind }) => kind === "compensate");
  const chosen = undoable
    .slice(0, SHOWN_CHOICES)
    .map(({ run_id, step }) => `--with ${escapeControls(run_id)}/${step}`);
  const more = undoable.length > SHOWN_CHOICES ? " ..." : "";
  return [
    `${formatCountOf(dependents.length, "call")} of other runs built on it${dependents_cut ? ", and more" : ""}:`,
    ...alignColumns(rows),
    ...(chosen.length === 0
      ? []
      : [`to undo them too: svc rollback ${escapeControls(run)} ${chosen.join(" ")}${more}`]),
  ];
}

/** Maximum steps in the suggested command. */
const SHOWN_CHOICES = 20;

export function describePlan(plan: RollbackPlan, color: PaintColors): string[] {
  const { ok, words } = planVerdict(plan);
  const head = `run ${plan.run_id}: ${ok ? color.green(words) : color.yellow(words)}`;
  if (plan.actions.length === 0) return [head, "  nothing to undo"];
  const rows = plan.actions.map((action) => [
    `  ${action.step}`,
    escapeControls(action.line ?? action.tool),
    paintKind(action, color),
    explain(action),
  ]);
  return [
    head,
    ...alignColumns(rows),
    ...plan.actions.filter(hasConflict).flatMap((action) => describeConflict(plan.run_id, action)),
  ];
}

/** Longer values are truncated. */
const SHOWN_CHARS = 300;

function describeConflict(run: string, action: CompensateAction): string[] {
  const what = action.line === undefined ? "" : ` (${escapeControls(action.line)})`;
  const overwrite = `svc rollback ${run} --overwrite ${action.step}`;
  return [
    action.parts
      ? `  step ${action.step}${what}: what changed since is left alone unless it is overwritten:`
      : `  step ${action.step}${what} is left alone unless it is overwritten:`,
    ...conflictStates(action),
    `    to overwrite: ${overwrite} --current ${action.current_hash}`,
    ...(action.before_run === undefined
      ? []
      : [
          `    before this run (steps ${action.before_run.steps.join(", ")}): ${stateText(action.before_run.would_be)}`,
          `    to restore that: ${overwrite} --to before_run --current ${action.current_hash}`,
        ]),
  ];
}

export const conflictStates = ({ was, is, would_be }: CompensateAction): string[] => [
  `    before the call  ${stateText(was)}`,
  `    now              ${stateText(is)}`,
  `    after the undo   ${stateText(would_be)}`,
];

function stateText(json: JsonValue | undefined): string {
  if (json === undefined) return "(not read)";
  const files = fileStates(json);
  const text = files === null ? JSON.stringify(json) : files.map(describeFile).join("; ");
  return cutText(escapeControls(text), SHOWN_CHARS);
}

const timeText = (ms: number): string => new Date(ms).toISOString();

function paintKind(action: PlanAction, color: PaintColors): string {
  if (action.kind === "compensate" && !hasFailed(action) && !hasConflict(action))
    return color.green(action.kind);
  return action.kind === "skip" ? color.dim(action.kind) : color.yellow(action.kind);
}

function explain(action: PlanAction): string {
  switch (action.kind) {
    case "compensate": {
      const notes = [
        action.verified ? "read back" : "not read back",
        ...(action.needs_approval ? ["needs approval"] : []),
        ...(action.proof === undefined ? [] : [action.proof]),
        ...(action.closes_ms === undefined ? [] : [`until ${timeText(action.closes_ms)}`]),
      ];
      const failed = hasFailed(action) ? `; failed before: ${escapeControls(action.last_error)}` : "";
      const changed = hasConflict(action)
        ? "; conflict: changed since the call"
        : isUnread(action)
          ? "; current state not read"
          : "";
      return `${escapeControls(action.compensation_tool)} (${action.compensation_kind}, ${notes.join(", ")})${failed}${changed}`;
    }
    case "defer":
      return `waits for step ${action.blocked_by.join(", ")}`;
    case "skip":
      return "needs no undo";
    case "unrecoverable":
      return action.closed ? `its undo expired at ${timeText(action.closes_ms!)}` : "cannot be undone";
    case "unresolved":
      return "outcome unknown; record it with svc resolve";
    case "unmanifested":
      return "no manifest, so no undo is known";
  }
}
