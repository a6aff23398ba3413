/** `svc horizon`: lists undos that expire, soonest first. */
import { formatDuration } from "../../../kernel/duration.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { listUndoDeadlines } from "../../../operations/runs/horizon.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";
import { printJsonList } from "../../print-json-list.ts";

interface ListedUndo {
  run_id: string;
  step: number;
  tool: string;
  closes_ms: number;
}

export const registerHorizon: RegisterCommand = (program, context) => {
  globalOptions(program.command("horizon").description("List undos that expire, soonest first"))
    .option("--within <period>", "only undos that expire within this time, such as 24h (default: all)")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      const { io } = context;
      const within = flags["within"] as string | undefined;
      await context.withDoor(flags, async (door) => {
        const pages = undoPages(door, within);
        if (flags["json"]) return printJsonList(io, "undos", pages);
        let none = true;
        for await (const undos of pages) {
          none = false;
          printUndos(io, undos, door.clock.now());
        }
        if (none)
          io.err(
            within === undefined ? "no undo expires" : `no undo expires within ${escapeControls(within)}`,
          );
      });
    });
};

async function* undoPages(door: OperationClient, within: string | undefined): AsyncGenerator<ListedUndo[]> {
  let cursor: string | undefined;
  do {
    const page = { within, limit: SERVICE_LIMITS.page_max, cursor };
    const found = await door.perform(listUndoDeadlines, page);
    if (found.undos.length > 0) yield found.undos;
    cursor = found.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

function printUndos(io: CommandIo, undos: readonly ListedUndo[], now: number): void {
  const rows = undos.map(({ run_id, step, tool, closes_ms }) => [
    run_id,
    `step ${step}`,
    escapeControls(tool),
    new Date(closes_ms).toISOString(),
    `in ${formatDuration(Math.max(0, closes_ms - now))}`,
  ]);
  for (const row of alignColumns(rows)) io.out(row);
}
