/** Lines of live requests, for callers who may open their cards. The listing itself has no argument values. */
import { type ApprovalView, LIVE_APPROVAL_STATUSES } from "../../../govern/approvals/approval.ts";
import { SvcError } from "../../../kernel/errors.ts";
import { getCard } from "../../../operations/approvals/approvals.ts";
import type { OperationClient } from "../../operation-client.ts";

/** Further requests show the names of their arguments. */
const MAX_LINES = 100;
const AT_ONCE = 4;

export async function requestLines(
  door: OperationClient,
  approvals: readonly ApprovalView[],
): Promise<Map<string, string>> {
  const lines = new Map<string, string>();
  const queue = approvals.filter(({ status }) => LIVE_APPROVAL_STATUSES.has(status)).slice(0, MAX_LINES);
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const line = await lineOf(door, next.id);
      if (line !== undefined) lines.set(next.id, line);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return lines;
}

/** Undefined for a request without a line, and for a caller who may not open the card. */
async function lineOf(door: OperationClient, approval_id: string): Promise<string | undefined> {
  try {
    return (await door.perform(getCard, { approval_id })).read().line;
  } catch (error) {
    if (error instanceof SvcError && (error.code === "not_found" || error.code === "forbidden"))
      return undefined;
    throw error;
  }
}
