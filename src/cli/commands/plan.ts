/** `svc plan <run>`: what a rollback would do. Exits 2 when the run is not fully reversible. */
import { plan as planOp } from "../../app/operations/rollback.ts";
import { hasFailed, type PlanAction, planVerdict, type RollbackPlan } from "../../rollback/plan.ts";
import { ATTENTION, globalOptions, type Register } from "../context.ts";
import { inert, type Paint, table } from "../io.ts";

export const registerPlan: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("plan <run>").description("show what a rollback would do; changes nothing"))
    .option("--json", "print the plan as JSON")
    .action(async (run: string, flags: Record<string, unknown>) => {
      await context.withDoor(flags, async (door) => {
        const plan = await door.perform(planOp, { run_id: run });
        if (flags["json"]) io.out(JSON.stringify(plan, null, 2));
        else for (const line of describePlan(plan, io.color)) io.out(line);
        if (!plan.fully_reversible) context.done(ATTENTION);
      });
    });
};

export function describePlan(plan: RollbackPlan, color: Paint): string[] {
  const { ok, words } = planVerdict(plan);
  const head = `run ${plan.run_id}: ${ok ? color.green(words) : color.yellow(words)}`;
  if (plan.actions.length === 0) return [head, "  nothing to undo"];
  const rows = plan.actions.map((action) => [
    `  ${action.step}`,
    inert(action.tool),
    paintKind(action, color),
    explain(action),
  ]);
  return [head, ...table(rows)];
}

function paintKind(action: PlanAction, color: Paint): string {
  if (action.kind === "compensate" && !hasFailed(action)) return color.green(action.kind);
  return action.kind === "skip" ? color.dim(action.kind) : color.yellow(action.kind);
}

function explain(action: PlanAction): string {
  switch (action.kind) {
    case "compensate": {
      const notes = [
        action.verified ? "read back" : "not read back",
        ...(action.needs_approval ? ["needs approval"] : []),
        ...(action.proof === undefined ? [] : [action.proof]),
      ];
      const failed = hasFailed(action) ? `; failed before: ${inert(action.last_error)}` : "";
      return `${inert(action.compensation_tool)} (${action.compensation_kind}, ${notes.join(", ")})${failed}`;
    }
    case "defer":
      return `waits for step ${action.blocked_by.join(", ")}`;
    case "skip":
      return "needs no undo";
    case "unrecoverable":
      return "cannot be undone";
    case "unresolved":
      return "outcome unknown; say what happened with svc resolve";
    case "unmanifested":
      return "no manifest, so no undo is known";
  }
}
