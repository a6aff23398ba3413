/** Requests of the same actor, tool and rule at the command line: listed together, and decided together. */
import { approve, deny, getApproval, getCard, listApprovals } from "../app/operations/approvals.ts";
import { conflict, invalid, messageOf, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import { plural } from "../kernel/words.ts";
import { type ApprovalView, OPEN_APPROVAL, requestGroups, sameGroup } from "../model/approval.ts";
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

export async function listGroups(
  door: Door,
  io: Io,
  { run_id, json }: { run_id: string | undefined; json: boolean },
): Promise<void> {
  const groups = requestGroups(await openRequests(door, run_id)).map(({ requests, ...alike }) => ({
    ...alike,
    waiting: requests.length,
    ids: requests.map(({ id }) => id),
  }));
  if (json) return io.out(JSON.stringify({ groups }));
  if (groups.length === 0) return io.err("no requests");
  const rows = groups.map(({ actor, tool, rule, waiting, ids }) => [
    ids[0]!,
    `${waiting} waiting`,
    printable(actor),
    printable(tool),
    printable(rule ?? ""),
  ]);
  for (const row of columns(rows)) io.out(row);
}

/**
 * Decides every open request that is like this one, each by its own card. Answers whether all were decided; what
 * could not be is told by its id, and the others stand.
 */
export async function decideGroup(
  door: Door,
  io: Io,
  { id, verb, note }: { id: string; verb: "approve" | "deny"; note: string | undefined },
): Promise<boolean> {
  const one = await door.perform(getApproval, { approval_id: id });
  if (!OPEN_APPROVAL.has(one.status))
    throw conflict("request_not_open", `${id} is ${one.status}; name one that waits`);
  const alike = (await openRequests(door)).filter((other) => sameGroup(one, other));
  let decided = 0;
  const problems: SvcError[] = [];
  for (const { id: approval_id } of alike) {
    try {
      const { irreversible, card_hash } = await door.perform(getCard, { approval_id });
      if (irreversible) throw invalid("an irreversible call is decided by itself, without --group");
      if (card_hash === null) throw conflict("card_gone", "its card can no longer be shown");
      const done = await door.perform(verb === "approve" ? approve : deny, { approval_id, note, card_hash });
      io.out(`${approval_id}: ${done.status}`);
      decided++;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      problems.push(error);
      io.err(`${approval_id}: ${messageOf(error)}`);
    }
  }
  if (decided === 0 && problems.length > 0) throw problems[0]!;
  io.out(`${decided} of ${plural(alike.length, "request")} decided`);
  return problems.length === 0;
}
