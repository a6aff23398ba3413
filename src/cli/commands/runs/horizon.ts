/** `svc horizon`: lists undos that expire, soonest first. */
import { formatDuration } from "../../../kernel/duration.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { listUndoDeadlines } from "../../../operations/runs/horizon.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerHorizon: RegisterCommand = (program, context) => {
  globalOptions(program.command("horizon").description("List undos that expire, soonest first"))
    .option("--within <period>", "only undos that expire within this time, such as 24h (default: all)")
    .option("--json", "print one JSON object per undo")
    .action(async (flags: Record<string, unknown>) => {
      const { io } = context;
      const within = flags["within"] as string | undefined;
      await context.withDoor(flags, async (door) => {
        let cursor: string | undefined;
        let none = true;
        do {
          const found = await door.perform(listUndoDeadlines, {
            within,
            limit: SERVICE_LIMITS.page_max,
            cursor,
          });
          none = none && found.undos.length === 0;
          if (flags["json"]) for (const undo of found.undos) io.out(JSON.stringify(undo));
          else {
            const now = door.clock.now();
            const rows = found.undos.map(({ run_id, step, tool, closes_ms }) => [
              run_id,
              `step ${step}`,
              escapeControls(tool),
              new Date(closes_ms).toISOString(),
              `in ${formatDuration(Math.max(0, closes_ms - now))}`,
            ]);
            for (const row of alignColumns(rows)) io.out(row);
          }
          cursor = found.next_cursor ?? undefined;
        } while (cursor !== undefined);
        if (none && !flags["json"])
          io.err(
            within === undefined ? "no undo expires" : `no undo expires within ${escapeControls(within)}`,
          );
      });
    });
};
