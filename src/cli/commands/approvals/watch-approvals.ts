/** Prints the pending requests on a terminal and updates the list until the user stops it. */
import type { ApprovalView } from "../../../govern/approvals/approval.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { listApprovals } from "../../../operations/approvals/approvals.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";

const LOOK_MS = 1_000;
const CLEAR = "\u001b[2J\u001b[H";

export async function watchApprovals(door: OperationClient, io: CommandIo, once: boolean): Promise<void> {
  const stop = new AbortController();
  const end = () => stop.abort();
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  try {
    let shown: string | undefined;
    while (!stop.signal.aborted) {
      const drawn = (await drawnList(door)).join("\n");
      // A pipe receives each change once. A terminal also shows the time left.
      if (drawn !== shown) io.out(io.tty && !once ? `${CLEAR}${drawn}` : drawn);
      shown = drawn;
      if (once) return;
      await door.clock.sleep(LOOK_MS, stop.signal).catch(() => {});
    }
  } finally {
    process.removeListener("SIGINT", end);
    process.removeListener("SIGTERM", end);
  }
}

async function drawnList(door: OperationClient): Promise<string[]> {
  const lists = await Promise.all(
    (["pending", "escalated"] as const).map((status) =>
      door.perform(listApprovals, { status, limit: SERVICE_LIMITS.page_max }),
    ),
  );
  const waiting = lists.flatMap(({ approvals }) => approvals).sort((a, b) => a.expires_ms - b.expires_ms);
  if (waiting.length === 0) return ["no pending requests"];
  const now = door.clock.now();
  const rows = waiting.map((one) => [
    one.id,
    escapeControls(one.actor),
    escapeControls(one.tool),
    `(${one.arg_names.map(escapeControls).join(", ")})`,
    escapeControls(one.rule ?? ""),
    left(one, now),
  ]);
  return [`${waiting.length} waiting`, ...alignColumns(rows)];
}

function left({ expires_ms }: ApprovalView, now: number): string {
  const minutes = Math.max(0, Math.ceil((expires_ms - now) / 60_000));
  return minutes < 120 ? `${minutes}m left` : `${Math.floor(minutes / 60)}h left`;
}
