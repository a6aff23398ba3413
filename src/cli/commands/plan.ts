/** `svc plan <run>`: what a rollback would do. Exits 2 when the run is not fully reversible. */
import { plan as planOp } from "../../app/operations/rollback.ts";
import type { Json } from "../../kernel/json.ts";
import {
  type CompensateAction,
  hasConflict,
  hasFailed,
  isUnread,
  type PlanAction,
  planVerdict,
  type RollbackPlan,
} from "../../rollback/plan.ts";
import { ATTENTION, globalOptions, type Register } from "../context.ts";
import { columns, type Paint, printable } from "../io.ts";
import { undoingThroughUpstreams } from "../upstreams.ts";

export const registerPlan: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("plan <run>").description("show what a rollback would do; changes nothing"))
    .option("--reader-cmd <cmd>", "reads what is there now: gets {tool, arguments} on stdin, prints its JSON")
    .option("--json", "print the plan as JSON")
    .action(async (run: string, flags: Record<string, unknown>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const look = () => door.perform(planOp, { run_id: run });
          const plan = await (door.local === null ? look() : undoingThroughUpstreams(door.local, look));
          if (flags["json"]) io.out(JSON.stringify(plan, null, 2));
          else for (const line of describePlan(plan, io.color)) io.out(line);
          if (!plan.fully_reversible) context.done(ATTENTION);
        },
        ["readerCmd"],
      );
    });
};

export function describePlan(plan: RollbackPlan, color: Paint): string[] {
  const { ok, words } = planVerdict(plan);
  const head = `run ${plan.run_id}: ${ok ? color.green(words) : color.yellow(words)}`;
  if (plan.actions.length === 0) return [head, "  nothing to undo"];
  const rows = plan.actions.map((action) => [
    `  ${action.step}`,
    printable(action.tool),
    paintKind(action, color),
    explain(action),
  ]);
  return [
    head,
    ...columns(rows),
    ...plan.actions.filter(hasConflict).flatMap((action) => describeConflict(plan.run_id, action)),
  ];
}

/** A value that fills a screen says no more than its beginning. */
const SHOWN_CHARS = 300;

function describeConflict(run: string, action: CompensateAction): string[] {
  const value = (json: Json | undefined) =>
    json === undefined ? "(not read)" : printable(JSON.stringify(json)).slice(0, SHOWN_CHARS);
  return [
    `  step ${action.step} is left alone unless it is overwritten:`,
    `    was       ${value(action.was)}`,
    `    is        ${value(action.is)}`,
    `    would be  ${value(action.would_be)}`,
    `    to overwrite: svc rollback ${run} --overwrite ${action.step} --current ${action.current_hash} --reason <text>`,
    ...(action.before_run === undefined
      ? []
      : [
          `    before this run (steps ${action.before_run.steps.join(", ")}): ${value(action.before_run.would_be)}`,
          `    to restore that: svc rollback ${run} --overwrite ${action.step} --to before_run --current ${action.current_hash} --reason <text>`,
        ]),
  ];
}

const timeText = (ms: number): string => new Date(ms).toISOString();

function paintKind(action: PlanAction, color: Paint): string {
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
      const failed = hasFailed(action) ? `; failed before: ${printable(action.last_error)}` : "";
      const changed = hasConflict(action)
        ? "; conflict: changed since the call"
        : isUnread(action)
          ? "; what is there now was not read"
          : "";
      return `${printable(action.compensation_tool)} (${action.compensation_kind}, ${notes.join(", ")})${failed}${changed}`;
    }
    case "defer":
      return `waits for step ${action.blocked_by.join(", ")}`;
    case "skip":
      return "needs no undo";
    case "unrecoverable":
      return action.closed ? `its undo closed at ${timeText(action.closes_ms!)}` : "cannot be undone";
    case "unresolved":
      return "outcome unknown; say what happened with svc resolve";
    case "unmanifested":
      return "no manifest, so no undo is known";
  }
}
