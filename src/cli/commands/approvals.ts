/** `svc approvals list|show|watch|approve|deny`: looking at requests and deciding them from the command line. */
import type { Command } from "commander";
import type { OfferView } from "../../app/operations/approvals/offers.ts";
import { approve, deny, getCard, listApprovals } from "../../app/operations/approvals.ts";
import { invalid, messageOf, SvcError } from "../../kernel/errors.ts";
import { type Json, parseJson } from "../../kernel/json.ts";
import type { ApprovalStatus, ApprovalView } from "../../model/approval.ts";
import { decideGroup, floodedRows, listGroups } from "../approval-groups.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import type { Door } from "../door.ts";
import { columns, printable } from "../io.ts";
import { watchApprovals } from "../watch-approvals.ts";

export const registerApprovals: Register = (program, context) => {
  const { io } = context;
  const group = program.command("approvals").description("approval requests");

  globalOptions(group.command("list").description("list requests, newest first"))
    .option("--status <status>", "pending, escalated, approved, denied, expired or consumed")
    .option("--run <id>", "only those of this run")
    .option("--group", "what waits with the same actor, tool and rule as a table, under the id of its oldest")
    .option("--no-group", "one line a request, also past the flood")
    .option("--json", "print JSON")
    .action(async (flags: Flags) => {
      const text = (name: string) => flags[name] as string | undefined;
      if (flags["group"] === true) {
        if (flags["status"] !== undefined) throw invalid("--group lists what waits; leave --status out");
        const what = { run_id: text("run"), json: flags["json"] !== undefined };
        return context.withDoor(flags, (door) => listGroups(door, io, what));
      }
      const query = { limit: 500, status: text("status") as ApprovalStatus | undefined, run_id: text("run") };
      await context.withDoor(flags, async (door) => {
        const { approvals, flooded = [] } = await door.perform(listApprovals, query);
        if (flags["json"]) return io.out(JSON.stringify({ approvals }));
        if (approvals.length === 0) return io.err("no requests");
        const grouped = flags["group"] === false ? [] : flooded;
        for (const row of columns(floodedRows(approvals, grouped, rowOf))) io.out(row);
        if (grouped.length > 0) io.err("--group shows their values, --no-group each request");
      });
    });

  globalOptions(group.command("show <id>").description("show the card of a request: what it is judged by"))
    .option("--json", "print JSON")
    .action(async (id: string, flags: Record<string, string>) => {
      await context.withDoor(flags, async (door) => {
        const card = await door.perform(getCard, { approval_id: id });
        if (flags["json"]) return io.out(JSON.stringify(card));
        io.out(card.text);
        if (card.card_hash !== null) io.out(`\nCard      ${card.card_hash}`);
      });
    });

  globalOptions(group.command("watch").description("list what waits for a person, as it comes and goes"))
    .option("--once", "print the list once and end")
    .action((flags: Record<string, string>) =>
      context.withDoor(flags, (door) => watchApprovals(door, io, flags["once"] !== undefined)),
    );

  registerDecisions(group, context);
};

const rowOf = (one: ApprovalView): string[] => [
  one.id,
  one.status,
  printable(one.tool),
  printable(one.run_id),
  printable(one.actor),
  `(${one.arg_names.map(printable).join(", ")})`,
  printable(one.decided_by ?? ""),
];

function registerDecisions(group: Command, context: Context): void {
  const { io } = context;
  for (const verb of ["approve", "deny"] as const) {
    const command = globalOptions(group.command(`${verb} <id>`).description(`${verb} a request`))
      .option("--as <name>", "who decides (default: cli)")
      .option("--note <text>", "why")
      .option(
        "--group",
        "and every other that waits with the same actor, tool and rule, each by its own card",
      )
      .option("--yes [count]", "with --group: go ahead without asking, if there are so many")
      .option("--card <hash>", "the card that was looked at (default: the card as it is now)");
    if (verb === "deny")
      command.option("--offer <json>", "other arguments, approved in place of those asked for");
    command.action(async (id: string, flags: Record<string, string> & { yes?: string | boolean }) => {
      const offer = flags["offer"] === undefined ? undefined : { args: offeredArgs(flags["offer"]) };
      if (flags["group"] !== undefined) {
        if (offer !== undefined || flags["card"] !== undefined)
          throw invalid("--group: --card and --offer are of one request; leave them out");
        const all = await context.withDoor(flags, (door) =>
          decideGroup(door, io, { id, verb, note: flags["note"], yes: flags.yes }),
        );
        return context.done(all ? 0 : 1);
      }
      await context.withDoor(flags, async (door) => {
        const card_hash = flags["card"] ?? (await cardNow(door, id));
        const input = { approval_id: id, note: flags["note"], card_hash };
        const done: ApprovalView & { offer?: OfferView } =
          verb === "approve"
            ? await door.perform(approve, input)
            : await door.perform(deny, { ...input, ...(offer && { offer }) });
        const more =
          done.status === "pending" || done.status === "escalated"
            ? ` (${done.votes.length} of ${done.approvers.quorum})`
            : "";
        io.out(`${done.id}: ${done.status}${more}`);
        if (done.offer !== undefined) io.out(`${done.offer.approval_id}: offered in its place`);
      });
    });
  }
}

function offeredArgs(text: string): Json {
  try {
    return parseJson(text);
  } catch (error) {
    throw invalid(`--offer: ${messageOf(error)}`);
  }
}

/** Whoever may not see the card is told why by the decision itself. */
async function cardNow(door: Door, id: string): Promise<string | undefined> {
  try {
    return (await door.perform(getCard, { approval_id: id })).card_hash ?? undefined;
  } catch (error) {
    if (error instanceof SvcError && error.code === "not_found") return undefined;
    throw error;
  }
}
