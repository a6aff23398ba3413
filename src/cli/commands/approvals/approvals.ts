/** `svc approvals list|show|watch|approve|deny`: lists and decides approval requests. */
import type { Command } from "commander";
import type { ApprovalStatus, ApprovalView } from "../../../govern/approvals/approval.ts";
import { invalidError, messageOf, SvcError } from "../../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../../kernel/json/json.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import {
  approveRequest,
  denyRequest,
  getCard,
  listApprovals,
} from "../../../operations/approvals/approvals.ts";
import type { OfferView } from "../../../operations/approvals/counter-proposals.ts";
import { confirmShown, NO_CARD_SHOWN } from "../../confirm.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";
import { decideGroup, floodedRows, listGroups } from "./approval-groups.ts";
import { requestLines } from "./request-lines.ts";
import { watchApprovals } from "./watch-approvals.ts";

export const registerApprovals: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("approvals").description("List and decide approval requests");

  globalOptions(group.command("list").description("List requests, newest first"))
    .option("--status <status>", "pending, escalated, approved, denied, expired or consumed")
    .option("--run <id>", "only requests of this run")
    .option("--group", "group pending requests by actor, tool and rule, under the id of the oldest")
    .option("--no-group", "one line per request, even for a burst")
    .option("--json", "print JSON")
    .action(async (flags: CommandFlags) => {
      const text = (name: string) => flags[name] as string | undefined;
      if (flags["group"] === true) {
        if (flags["status"] !== undefined)
          throw invalidError("--group lists pending requests; omit --status");
        const what = { run_id: text("run"), json: flags["json"] !== undefined };
        return context.withDoor(flags, (door) => listGroups(door, io, what));
      }
      const query = { limit: 500, status: text("status") as ApprovalStatus | undefined, run_id: text("run") };
      await context.withDoor(flags, async (door) => {
        const { approvals, flooded = [] } = await door.perform(listApprovals, query);
        if (flags["json"]) return io.out(JSON.stringify({ approvals }));
        if (approvals.length === 0) return io.err("no requests");
        const grouped = flags["group"] === false ? [] : flooded;
        const lines = await requestLines(door, approvals);
        const lineOf = (one: ApprovalView, isGroup: boolean) => (isGroup ? undefined : lines.get(one.id));
        const rows = floodedRows(approvals, grouped, (...one) => rowOf(one[0], lineOf(...one)));
        for (const row of alignColumns(rows)) io.out(row);
        if (grouped.length > 0) io.err("--group shows their values, --no-group each request");
      });
    });

  globalOptions(group.command("show <id>").description("Show the card of a request"))
    .option("--json", "print JSON")
    .action(async (id: string, flags: Record<string, string>) => {
      await context.withDoor(flags, async (door) => {
        const card = (await door.perform(getCard, { approval_id: id })).read();
        if (flags["json"]) return io.out(JSON.stringify(card));
        io.out(card.text);
        if (card.card_hash !== null) io.out(`\nCard      ${card.card_hash}`);
      });
    });

  globalOptions(group.command("watch").description("Watch pending requests"))
    .option("--once", "print the list once and exit")
    .action((flags: Record<string, string>) =>
      context.withDoor(flags, (door) => watchApprovals(door, io, flags["once"] !== undefined)),
    );

  registerDecisions(group, context);
};

const rowOf = (one: ApprovalView, line: string | undefined): string[] => [
  one.id,
  one.status,
  escapeControls(one.tool),
  escapeControls(one.run_id),
  escapeControls(one.actor),
  line === undefined ? `(${one.arg_names.map(escapeControls).join(", ")})` : escapeControls(line),
  escapeControls(one.decided_by ?? ""),
];

function registerDecisions(group: Command, context: CommandContext): void {
  const { io } = context;
  for (const verb of ["approve", "deny"] as const) {
    const command = globalOptions(
      group.command(`${verb} <id>`).description(`${capitalizeFirst(verb)} a request`),
    )
      .option("--as <name>", "who decides (default: cli)")
      .option("--note <text>", "why")
      .option("--group", "also decide all pending requests with the same actor, tool and rule")
      .option("--yes [count]", "skip the question; with --group, give the number of requests and --card")
      .option("--card <hash>", "hash of the reviewed card or table (default: it is shown first)");
    if (verb === "deny") command.option("--offer <json>", "other arguments to approve instead");
    command.action(async (id: string, flags: Record<string, string> & { yes?: string | boolean }) => {
      const offer = flags["offer"] === undefined ? undefined : { args: offeredArgs(flags["offer"]) };
      if (flags["group"] !== undefined) {
        if (offer !== undefined) throw invalidError("--group: cannot be combined with --offer");
        const all = await context.withDoor(flags, (door) =>
          decideGroup(door, io, { id, verb, note: flags["note"], yes: flags.yes, card: flags["card"] }),
        );
        return context.done(all ? 0 : 1);
      }
      await context.withDoor(flags, async (door) => {
        const card_hash = flags["card"] ?? (await shownCard(door, io, id));
        if (verb === "approve" && flags["card"] === undefined && card_hash !== NO_CARD_SHOWN)
          await confirmShown(io, "Approve this call", flags.yes);
        const input = { approval_id: id, note: flags["note"], card_hash };
        const done: ApprovalView & { offer?: OfferView } =
          verb === "approve"
            ? await door.perform(approveRequest, input)
            : await door.perform(denyRequest, { ...input, ...(offer && { offer }) });
        const more =
          done.status === "pending" || done.status === "escalated"
            ? ` (${done.votes.length} of ${done.approvers.quorum})`
            : "";
        io.out(`${done.id}: ${done.status}${more}`);
        if (done.offer !== undefined) io.out(`${done.offer.approval_id}: offered instead`);
      });
    });
  }
}

function offeredArgs(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    throw invalidError(`--offer: ${messageOf(error)}`);
  }
}

/**
 * Shows the card that the decision will name, so that the approver has seen each card on the ledger. If this person
 * may not see it, the decision itself says why.
 */
async function shownCard(door: OperationClient, io: CommandIo, id: string): Promise<string> {
  try {
    const { text, card_hash } = (await door.perform(getCard, { approval_id: id })).read();
    if (card_hash === null) return NO_CARD_SHOWN;
    io.err(`${text}\n\nCard      ${card_hash}\n`);
    return card_hash;
  } catch (error) {
    if (error instanceof SvcError && error.code === "not_found") return NO_CARD_SHOWN;
    throw error;
  }
}
