/** `svc plans list|show|approve|deny`: lists and decides plans that agents propose. */
import type { PlanStatus } from "../../../govern/plans/plan.ts";
import { actorText } from "../../../govern/roles.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { approvePlan, denyPlan, getPlan, listPlans } from "../../../operations/plans.ts";
import { confirmShown, NO_CARD_SHOWN } from "../../confirm.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";

export const registerPlans: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("plans").description("List and decide plans that agents propose");

  globalOptions(group.command("list").description("List plans, newest first"))
    .option("--status <status>", "pending, approved, denied, expired, ended or done")
    .option("--run <id>", "only plans of this run")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, string>) => {
      const query = {
        limit: SERVICE_LIMITS.page_max,
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
          escapeControls(one.run_id),
          escapeControls(one.actor),
          escapeControls(one.reason),
        ]);
        for (const row of alignColumns(rows)) io.out(row);
      });
    });

  globalOptions(group.command("show <id>").description("Show a plan, call by call"))
    .option("--as <name>", "who reads it (default: cli)")
    .option("--json", "print JSON")
    .action(async (id: string, flags: Record<string, string>) => {
      await context.withDoor(flags, async (door) => {
        const plan = (await door.perform(getPlan, { plan_id: id })).read();
        if (flags["json"]) return io.out(JSON.stringify(plan));
        for (const line of describePlan(plan)) io.out(line);
      });
    });

  for (const [verb, op] of [
    ["approve", approvePlan],
    ["deny", denyPlan],
  ] as const) {
    globalOptions(group.command(`${verb} <id>`).description(`${capitalizeFirst(verb)} a plan`))
      .option("--as <name>", "who decides (default: cli)")
      .option("--note <text>", "why")
      .option("--yes", "skip the confirmation")
      .option("--card <hash>", "card hash from svc plans show (default: the plan is shown first)")
      .action(async (id: string, flags: Record<string, string> & { yes?: boolean }) => {
        await context.withDoor(flags, async (door) => {
          const card_hash = flags["card"] ?? (await shownPlan(door, io, id));
          if (verb === "approve" && flags["card"] === undefined && card_hash !== NO_CARD_SHOWN)
            await confirmShown(io, "Approve this plan", flags.yes);
          const given = { note: flags["note"], card_hash };
          const done = await door.perform(op, { plan_id: id, ...given });
          io.out(`${done.id}: ${done.status}`);
        });
      });
  }
};

/** Shows the cards that the decision will name. */
async function shownPlan(door: OperationClient, io: CommandIo, id: string): Promise<string> {
  const plan = (await door.perform(getPlan, { plan_id: id })).read();
  if (plan.card_hash === undefined) return NO_CARD_SHOWN;
  for (const line of describePlan(plan)) io.err(line);
  return plan.card_hash;
}

function describePlan(plan: ReturnType<ResponseOf<typeof getPlan>["read"]>): string[] {
  const lines = [
    `${plan.id}: ${plan.status}, ${escapeControls(actorText(plan))} in ${escapeControls(plan.run_id)}: ${escapeControls(plan.reason)}`,
  ];
  for (const [i, call] of plan.calls.entries()) {
    const names = call.arg_names.map(escapeControls).join(", ");
    lines.push(`${i}. ${escapeControls(call.tool)} (${names}): ${call.decision}, risk ${call.risk_score}`);
    for (const reason of call.reasons) lines.push(`   ${escapeControls(reason)}`);
    const card = plan.cards?.[i];
    if (card === null) lines.push("   only users who can decide this call see its values");
    for (const line of card?.text.split("\n") ?? []) lines.push(line === "" ? "" : `   ${line}`);
  }
  if (plan.irreversible.length > 0)
    lines.push(`cannot be undone: ${plan.irreversible.map(escapeControls).join(", ")}`);
  for (const left of plan.residue) lines.push(`remains after an undo: ${escapeControls(left)}`);
  if (plan.card_hash !== undefined) lines.push(`card ${plan.card_hash}`);
  return lines;
}
