/** Requests of the same actor, tool and rule at the command line: listed together, and decided together. */
import { createInterface } from "node:readline/promises";
import { approve, deny, getApproval, getCard, listApprovals } from "../app/operations/approvals.ts";
import { conflict, invalid, messageOf, SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { plural } from "../kernel/words.ts";
import { type ApprovalView, OPEN_APPROVAL, requestGroups, sameGroup } from "../model/approval.ts";
import { groupQuestion, type RequestTable, requestTable, tableful } from "../model/request-table.ts";
import type { Door } from "./door.ts";
import { columns, type Io, printable } from "./io.ts";

/** Every request that a person can still decide, the oldest first. */
async function openRequests(door: Door, run_id?: string): Promise<ApprovalView[]> {
  const found: ApprovalView[] = [];
  for (const status of OPEN_APPROVAL as ReadonlySet<"pending" | "escalated">) {
    let cursor: string | undefined;
    do {
      const page = await door.perform(listApprovals, { status, run_id, cursor, limit: LIMITS.page_max });
      found.push(...page.approvals);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }
  return found.sort((a, b) => a.requested_ms - b.requested_ms);
}

interface GroupCard {
  id: string;
  args: Json | null;
  fields: { path: string; as: "text" | "money" | "time" | "code" | "diff" }[];
  irreversible: boolean;
  card_hash: string | null;
}

/** The cards that one table can show; a request whose card is not this person's to see is left out. */
async function cardsOf(door: Door, requests: readonly Pick<ApprovalView, "id">[]): Promise<GroupCard[]> {
  const cards: GroupCard[] = [];
  for (const { id } of requests.slice(0, LIMITS.group_rows)) {
    try {
      const card = await door.perform(getCard, { approval_id: id });
      const { fields, irreversible, card_hash } = card;
      cards.push({ id, args: card.arguments as Json | null, fields, irreversible, card_hash });
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "not_found") throw error;
    }
  }
  return tableful(cards);
}

export async function listGroups(
  door: Door,
  io: Io,
  { run_id, json }: { run_id: string | undefined; json: boolean },
): Promise<void> {
  const groups = requestGroups(await openRequests(door, run_id)).map(({ requests, ...alike }) => ({
    ...alike,
    waiting: requests.length,
    ids: requests.map(({ id }) => id),
    requests,
  }));
  if (json) return io.out(JSON.stringify({ groups: groups.map(({ requests: _, ...group }) => group) }));
  if (groups.length === 0) return io.err("no requests");
  const heads = columns(
    groups.map(({ actor, tool, rule, waiting, ids }) => [
      ids[0]!,
      `${waiting} waiting`,
      printable(actor),
      printable(tool),
      printable(rule ?? ""),
    ]),
  );
  for (const [i, head] of heads.entries()) {
    io.out(head);
    const { requests } = groups[i]!;
    if (requests.length < 2) continue;
    const cards = await cardsOf(door, requests);
    if (cards.some(({ irreversible }) => irreversible)) io.out("  irreversible: each is decided by itself");
    if (cards.length > 1) for (const line of tableLines(requestTable(cards), requests.length)) io.out(line);
  }
}

const CELL_CHARS = 60;

/** A value that does not fit is cut with its length; its card has all of it. */
function cell(text: string): string {
  const line = printable(text);
  return line.length <= CELL_CHARS
    ? line
    : `${line.slice(0, CELL_CHARS)}… (${plural(line.length, "character")})`;
}

function tableLines({ same, columns: differing, rows }: RequestTable, total: number): string[] {
  const equal = same.map(({ name, text }) => `  same   ${printable(name)}: ${cell(text)}`);
  if (differing.length === 0) return equal;
  const head = ["  ", "request", ...differing.map(({ name }) => printable(name))];
  const body = rows.map(({ id, cells, unusual }) => [
    unusual ? " !" : "  ",
    id,
    ...cells.map((one) => `${cell(one.text)}${one.unusual ? " (unusual)" : ""}`),
  ]);
  const rest =
    total > rows.length ? [`  ${rows.length} of ${plural(total, "request")} are in this table`] : [];
  return [...equal, ...columns([head, ...body]), ...rest];
}

interface GroupDecision {
  id: string;
  verb: "approve" | "deny";
  note: string | undefined;
  /** `--yes`, with the number of requests where the person named it. */
  yes: string | boolean | undefined;
}

/**
 * Decides every open request that is like this one, each by its own card, once a person has seen the table and
 * repeated how many there are. Answers whether all were decided; a request that could not be is named.
 */
export async function decideGroup(
  door: Door,
  io: Io,
  { id, verb, note, yes }: GroupDecision,
): Promise<boolean> {
  const one = await door.perform(getApproval, { approval_id: id });
  if (!OPEN_APPROVAL.has(one.status))
    throw conflict("request_not_open", `${id} is ${one.status}; name one that waits`);
  const alike = (await openRequests(door)).filter((other) => sameGroup(one, other));
  const cards = await cardsOf(door, alike);
  // A person who may see no card learns from the decision itself why that is so.
  if (cards.length === 0) await door.perform(verb === "approve" ? approve : deny, { approval_id: id, note });
  if (cards.some(({ irreversible }) => irreversible))
    throw invalid("an irreversible call is decided by itself, without --group");
  const table = requestTable(cards);
  for (const line of tableLines(table, alike.length)) io.out(line);
  io.out(groupQuestion(verb, { tool: printable(one.tool), actor: printable(one.actor) }, table));
  await confirmCount(io, cards.length, yes);
  const decided = await decideCards(door, io, cards, { verb, note });
  if (alike.length > cards.length)
    io.out(`${alike.length - cards.length} more wait; run the command again for the next ones`);
  return decided === cards.length;
}

async function decideCards(
  door: Door,
  io: Io,
  cards: readonly GroupCard[],
  { verb, note }: Pick<GroupDecision, "verb" | "note">,
): Promise<number> {
  const problems: SvcError[] = [];
  const group_of = cards.length;
  for (const { id: approval_id, card_hash } of cards) {
    try {
      if (card_hash === null) throw conflict("card_gone", "its card can no longer be shown");
      const input = { approval_id, note, card_hash, group_of };
      const done = await door.perform(verb === "approve" ? approve : deny, input);
      io.out(`${approval_id}: ${done.status}`);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      problems.push(error);
      io.err(`${approval_id}: ${messageOf(error)}`);
    }
  }
  const decided = cards.length - problems.length;
  if (decided === 0 && problems.length > 0) throw problems[0]!;
  io.out(`${decided} of ${plural(cards.length, "request")} decided`);
  return decided;
}

/** A person repeats the number, and so decides no more than the table showed. */
async function confirmCount(io: Io, count: number, yes: string | boolean | undefined): Promise<void> {
  if (yes === true || yes === String(count)) return;
  if (yes === undefined && process.stdin.isTTY === true && io.tty) {
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    const typed = await lines.question(`type ${count} to go ahead: `).finally(() => lines.close());
    if (typed.trim() === String(count)) return;
    throw invalid("nothing was decided: the number is another one");
  }
  throw invalid(
    yes === undefined
      ? `nothing was decided: repeat the number of requests with --yes ${count}, or say --yes`
      : `nothing was decided: --yes says another number than ${plural(count, "request")}; look at the table again`,
  );
}

/** Past the flood an actor's open requests are one line a group: the oldest of it, and how many there are. */
export function floodedRows(
  approvals: readonly ApprovalView[],
  flooded: readonly string[],
  rowOf: (one: ApprovalView) => string[],
): string[][] {
  const isFlood = ({ actor, status }: ApprovalView) => OPEN_APPROVAL.has(status) && flooded.includes(actor);
  const rows = requestGroups(approvals.filter(isFlood)).map(({ requests }) => {
    const oldest = requests.at(-1)!;
    const [id, status, tool, run, ...rest] = rowOf(oldest) as [string, string, string, string];
    if (requests.length === 1) return [id, status, tool, run, ...rest];
    return [
      id,
      `${requests.length} waiting`,
      tool,
      plural(new Set(requests.map((r) => r.run_id)).size, "run"),
      ...rest,
    ];
  });
  return [...rows, ...approvals.filter((one) => !isFlood(one)).map(rowOf)];
}
