/** Groups of approval requests with the same actor, tool and rule: lists and decides them together. */
import {
  type ApprovalView,
  OPEN_APPROVAL_STATUSES,
  requestGroups,
  sameGroup,
} from "../../../govern/approvals/approval.ts";
import {
  groupQuestion,
  type RequestTable,
  requestsForTable,
  requestTable,
} from "../../../govern/approvals/request-table.ts";
import { conflictError, invalidError, messageOf, SvcError } from "../../../kernel/errors.ts";
import { valueHash } from "../../../kernel/hash.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import {
  approveRequest,
  denyRequest,
  getApproval,
  getCard,
  listApprovals,
} from "../../../operations/approvals/approvals.ts";
import { canAsk, NO_CARD_SHOWN, typedAnswer } from "../../confirm.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";

/** Returns all pending and escalated requests, oldest first. */
async function openRequests(door: OperationClient, run_id?: string): Promise<ApprovalView[]> {
  const found: ApprovalView[] = [];
  for (const status of OPEN_APPROVAL_STATUSES as ReadonlySet<"pending" | "escalated">) {
    let cursor: string | undefined;
    do {
      const page = await door.perform(listApprovals, {
        status,
        run_id,
        cursor,
        limit: SERVICE_LIMITS.page_max,
      });
      found.push(...page.approvals);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }
  return found.sort((a, b) => a.requested_ms - b.requested_ms);
}

interface GroupCard {
  id: string;
  args: JsonValue | null;
  fields: readonly { path: string; as: "text" | "money" | "time" | "code" | "diff" }[];
  causes: readonly string[];
  irreversible: boolean;
  confirm?: true | undefined;
  card_hash: string | null;
}

/** Loads the cards for one table. Leaves out requests whose card the caller is not allowed to see. */
async function cardsOf(
  door: OperationClient,
  requests: readonly Pick<ApprovalView, "id">[],
): Promise<GroupCard[]> {
  const cards: GroupCard[] = [];
  for (const { id } of requests.slice(0, SERVICE_LIMITS.group_rows)) {
    try {
      const card = (await door.perform(getCard, { approval_id: id })).read();
      const { fields, causes, irreversible, confirm, card_hash } = card;
      const args = card.arguments as JsonValue | null;
      cards.push({ id, args, fields, causes, irreversible, confirm, card_hash });
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "not_found") throw error;
    }
  }
  return requestsForTable(cards);
}

export async function listGroups(
  door: OperationClient,
  io: CommandIo,
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
  const heads = alignColumns(
    groups.map(({ actor, tool, rule, waiting, ids }) => [
      ids[0]!,
      `${waiting} waiting`,
      escapeControls(actor),
      escapeControls(tool),
      escapeControls(rule ?? ""),
    ]),
  );
  for (const [i, head] of heads.entries()) {
    io.out(head);
    const { requests } = groups[i]!;
    if (requests.length < 2) continue;
    const cards = await cardsOf(door, requests);
    if (cards.some(({ irreversible }) => irreversible)) io.out("  irreversible: each is decided separately");
    else if (cards.some(({ confirm }) => confirm)) io.out("  each is decided separately");
    if (cards.length < 2) continue;
    for (const line of tableLines(requestTable(cards), requests.length)) io.out(line);
    if (!cards.some(isSeparate)) io.out(`  card   ${groupHash(cards)}`);
  }
}

const isSeparate = ({ irreversible, confirm }: GroupCard): boolean => irreversible || confirm === true;

/** Hash of the requests in a table and their cards, so that a decision covers no others. */
const groupHash = (cards: readonly GroupCard[]): string =>
  valueHash(cards.map(({ id, card_hash }) => [id, card_hash]));

const CELL_CHARS = 60;

/** Truncates a value that does not fit and adds its length. The request's card has the full value. */
function cell(text: string): string {
  const line = escapeControls(text);
  return fitsCell(text) ? line : `${line.slice(0, CELL_CHARS)}… (${formatCountOf(line.length, "character")})`;
}

const fitsCell = (text: string): boolean => !text.includes("\n") && escapeControls(text).length <= CELL_CHARS;

/** Every value that the table cut, in full. */
function wholeValues({ same, columns: differing, rows }: RequestTable): string[] {
  const cut = [
    ...same.map(({ name, text }) => ({ head: `same, ${escapeControls(name)}`, text })),
    ...rows.flatMap(({ id, cells }) =>
      cells.map(({ text }, i) => ({ head: `${id}, ${escapeControls(differing[i]!.name)}`, text })),
    ),
  ].filter(({ text }) => !fitsCell(text));
  return cut.flatMap(({ head, text }) => [
    `  ${head}, in full:`,
    ...text.split("\n").map((line) => `    ${escapeControls(line)}`),
  ]);
}

function tableLines(table: RequestTable, total: number): string[] {
  const { same, columns: differing, rows } = table;
  const equal = same.map(({ name, text }) => `  same   ${escapeControls(name)}: ${cell(text)}`);
  const whole = wholeValues(table);
  if (differing.length === 0) return [...equal, ...whole];
  const head = ["  ", "request", ...differing.map(({ name }) => escapeControls(name))];
  const body = rows.map(({ id, cells, unusual }) => [
    unusual ? " !" : "  ",
    id,
    ...cells.map((one) => `${cell(one.text)}${one.unusual ? " (unusual)" : ""}`),
  ]);
  const rest =
    total > rows.length ? [`  this table shows ${rows.length} of ${formatCountOf(total, "request")}`] : [];
  return [...equal, ...alignColumns([head, ...body]), ...rest, ...whole];
}

interface GroupDecision {
  id: string;
  verb: "approve" | "deny";
  note: string | undefined;
  /** `--yes`, with the number of requests if the user gave one. */
  yes: string | boolean | undefined;
  /** `--card`, the hash printed with the table. */
  card: string | undefined;
}

/**
 * Decides all open requests similar to this one, each by its own card, after the user has confirmed their number.
 * Returns whether all of them were decided, and prints an error for each that was not.
 */
export async function decideGroup(
  door: OperationClient,
  io: CommandIo,
  { id, verb, note, ...confirmed }: GroupDecision,
): Promise<boolean> {
  const one = await door.perform(getApproval, { approval_id: id });
  if (!OPEN_APPROVAL_STATUSES.has(one.status))
    throw conflictError("request_not_open", `${id} is ${one.status}; name a pending request`);
  const alike = (await openRequests(door)).filter((other) => sameGroup(one, other));
  const cards = await cardsOf(door, alike);
  // Without any visible card, the decision itself reports why the caller is not allowed to decide.
  if (cards.length === 0)
    await door.perform(verb === "approve" ? approveRequest : denyRequest, {
      approval_id: id,
      note,
      card_hash: NO_CARD_SHOWN,
    });
  if (cards.some(({ irreversible }) => irreversible))
    throw invalidError("an irreversible call must be decided without --group");
  if (cards.some(({ confirm }) => confirm))
    throw invalidError("a call that takes a second gesture must be decided without --group");
  const table = requestTable(cards);
  for (const line of tableLines(table, alike.length)) io.out(line);
  io.out(groupQuestion(verb, { tool: escapeControls(one.tool), actor: escapeControls(one.actor) }, table));
  await confirmGroup(io, cards, confirmed);
  const decided = await decideCards(door, io, cards, { verb, note });
  if (alike.length > cards.length)
    io.out(`${alike.length - cards.length} more are pending; run the command again to decide them`);
  return decided === cards.length;
}

async function decideCards(
  door: OperationClient,
  io: CommandIo,
  cards: readonly GroupCard[],
  { verb, note }: Pick<GroupDecision, "verb" | "note">,
): Promise<number> {
  const problems: SvcError[] = [];
  const group_of = cards.length;
  for (const { id: approval_id, card_hash } of cards) {
    try {
      if (card_hash === null) throw conflictError("card_gone", "its card can no longer be shown");
      const input = { approval_id, note, card_hash, group_of };
      const done = await door.perform(verb === "approve" ? approveRequest : denyRequest, input);
      io.out(`${approval_id}: ${done.status}`);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      problems.push(error);
      io.err(`${approval_id}: ${messageOf(error)}`);
    }
  }
  const decided = cards.length - problems.length;
  if (decided === 0 && problems.length > 0) throw problems[0]!;
  io.out(`${decided} of ${formatCountOf(cards.length, "request")} decided`);
  return decided;
}

/**
 * Asks the user to repeat the number of requests. Without a terminal, the user names the number and the hash of the
 * table, so that a request that arrived or changed later is not decided.
 */
async function confirmGroup(
  io: CommandIo,
  cards: readonly GroupCard[],
  { yes, card }: Pick<GroupDecision, "yes" | "card">,
): Promise<void> {
  const count = cards.length;
  const hash = groupHash(cards);
  if (card !== undefined && card !== hash)
    throw conflictError(
      "card_changed",
      "nothing was decided: the requests are not those of this --card; read the table again",
    );
  if (typeof yes === "string" && yes !== String(count))
    throw invalidError(
      `nothing was decided: --yes does not match ${formatCountOf(count, "request")}; check the table again`,
    );
  if (yes !== undefined && card !== undefined) return;
  if (yes === undefined && canAsk(io)) {
    if ((await typedAnswer(`type ${count} to confirm: `)) === String(count)) return;
    throw invalidError("nothing was decided: the number does not match");
  }
  throw invalidError(
    `nothing was decided: read the table, then confirm it with --yes ${count} --card ${hash}`,
  );
}

/**
 * For actors over the flood limit, prints one row per group: its oldest request, its size, and the names of all
 * arguments. `isGroup` omits the values of a single request.
 */
export function floodedRows(
  approvals: readonly ApprovalView[],
  flooded: readonly string[],
  rowOf: (one: ApprovalView, isGroup: boolean) => string[],
): string[][] {
  const isFlood = ({ actor, status }: ApprovalView) =>
    OPEN_APPROVAL_STATUSES.has(status) && flooded.includes(actor);
  const rows = requestGroups(approvals.filter(isFlood)).map(({ requests }) => {
    const isGroup = requests.length > 1;
    const arg_names = [...new Set(requests.flatMap((one) => one.arg_names))].sort();
    const row = rowOf({ ...requests.at(-1)!, arg_names }, isGroup);
    if (!isGroup) return row;
    const [id, , tool, , ...rest] = row as [string, string, string, string];
    const runs = formatCountOf(new Set(requests.map((r) => r.run_id)).size, "run");
    return [id, `${requests.length} waiting`, tool, runs, ...rest];
  });
  return [...rows, ...approvals.filter((one) => !isFlood(one)).map((one) => rowOf(one, false))];
}
