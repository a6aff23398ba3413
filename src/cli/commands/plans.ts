/** `svc plans list|show|approve|deny`: deciding what agents propose, from the command line. */
import type { AnswerTo } from "../../app/door/operation.ts";
import { approvePlan, denyPlan, getPlan, listPlans } from "../../app/operations/plans.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { PlanStatus } from "../../model/plan.ts";
import { globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

export const registerPlans: Register = (program, context) => {
  const { io } = context;
  const group = program.command("plans").description("plans that agents propose");

  globalOptions(group.command("list").description("list plans, newest first"))
    .option("--status <status>", "pending, approved, denied, expired, ended or done")
    .option("--run <id>", "only those of this run")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, string>) => {
      const query = {
        limit: LIMITS.page_max,
        status: flags["status"] as PlanStatus | undefined,
        run_id: flags["run"],
      };
      await context.withDoor(flags, async (door) => {
        const { plans } = await door.perform(listPlans, query);
        if (flags["json"]) return io.out(JSON.stringify({ plans }));
        if (plans.length === 0) return io.err("no plans");
        const rows = plans.map((one) => [
          one.id,
          one.status,
          `${one.calls.length} calls`,
          printable(one.run_id),
          printable(one.actor),
          printable(one.reason),
        ]);
        for (const row of columns(rows)) io.out(row);
      });
    });

  globalOptions(group.command("show <id>").description("show a plan, call by call"))
    .option("--as <name>", "who looks (default: cli)")
    .option("--json", "print JSON")
    .action(async (id: string, flags: Record<string, string>) => {
      await context.withDoor(flags, async (door) => {
        const plan = await door.perform(getPlan, { plan_id: id });
        if (flags["json"]) return io.out(JSON.stringify(plan));
        for (const line of describePlan(plan)) io.out(line);
      });
    });

  for (const [verb, op] of [
    ["approve", approvePlan],
    ["deny", denyPlan],
  ] as const) {
    globalOptions(group.command(`${verb} <id>`).description(`${verb} a plan`))
      .option("--as <name>", "who decides (default: cli)")
      .option("--note <text>", "why")
      .option("--card <hash>", "the card hash that `svc plans show` printed (default: as it is now)")
      .action(async (id: string, flags: Record<string, string>) => {
        await context.withDoor(flags, async (door) => {
          const card_hash = flags["card"] ?? (await door.perform(getPlan, { plan_id: id })).card_hash;
          const given = { note: flags["note"], card_hash };
          const done = await door.perform(op, { plan_id: id, ...given });
          io.out(`${done.id}: ${done.status}`);
        });
      });
  }
};

function describePlan(plan: AnswerTo<typeof getPlan>): string[] {
  const lines = [
    `${plan.id}: ${plan.status}, ${printable(plan.actor)} in ${printable(plan.run_id)}: ${printable(plan.reason)}`,
  ];
  for (const [i, call] of plan.calls.entries()) {
    const names = call.arg_names.map(printable).join(", ");
    lines.push(`${i}. ${printable(call.tool)} (${names}): ${call.decision}, risk ${call.risk_score}`);
    for (const reason of call.reasons) lines.push(`   ${printable(reason)}`);
    const card = plan.cards?.[i];
    if (card === null) lines.push("   its values are for those who may decide this call");
    for (const line of card?.text.split("\n") ?? []) lines.push(`   ${line}`.trimEnd());
  }
  if (plan.irreversible.length > 0)
    lines.push(`nothing takes back: ${plan.irreversible.map(printable).join(", ")}`);
  for (const left of plan.residue) lines.push(`stays after an undo: ${printable(left)}`);
  if (plan.card_hash !== undefined) lines.push(`card ${plan.card_hash}`);
  return lines;
}
