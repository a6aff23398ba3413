/** The requests that wait, in a terminal: drawn again whenever they change, until the person ends it. */
import { listApprovals } from "../app/operations/approvals.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { ApprovalView } from "../model/approval.ts";
import type { Door } from "./door.ts";
import { columns, type Io, printable } from "./io.ts";

const LOOK_MS = 1_000;
const CLEAR = "\u001b[2J\u001b[H";

export async function watchApprovals(door: Door, io: Io, once: boolean): Promise<void> {
  const stop = new AbortController();
  const end = () => stop.abort();
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  try {
    let shown: string | undefined;
    while (!stop.signal.aborted) {
      const drawn = (await drawnList(door)).join("\n");
      // A pipe gets every change once; a terminal also sees the time go by.
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

async function drawnList(door: Door): Promise<string[]> {
  const lists = await Promise.all(
    (["pending", "escalated"] as const).map((status) =>
      door.perform(listApprovals, { status, limit: LIMITS.page_max }),
    ),
  );
  const waiting = lists.flatMap(({ approvals }) => approvals).sort((a, b) => a.expires_ms - b.expires_ms);
  if (waiting.length === 0) return ["nobody waits"];
  const now = door.clock.now();
  const rows = waiting.map((one) => [
    one.id,
    printable(one.actor),
    printable(one.tool),
    `(${one.arg_names.map(printable).join(", ")})`,
    printable(one.rule ?? ""),
    left(one, now),
  ]);
  return [`${waiting.length} waiting`, ...columns(rows)];
}

function left({ expires_ms }: ApprovalView, now: number): string {
  const minutes = Math.max(0, Math.ceil((expires_ms - now) / 60_000));
  return minutes < 120 ? `${minutes}m left` : `${Math.floor(minutes / 60)}h left`;
}
