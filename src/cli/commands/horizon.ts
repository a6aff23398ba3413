/** `svc horizon`: undos that stop working, soonest first. */
import { horizon } from "../../app/operations/horizon.ts";
import { showDuration } from "../../kernel/duration.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

export const registerHorizon: Register = (program, context) => {
  globalOptions(program.command("horizon").description("list undos that stop working, soonest first"))
    .option("--within <period>", "only those that close within this time, such as 24h (default: all)")
    .option("--json", "print one JSON object per undo")
    .action(async (flags: Record<string, unknown>) => {
      const { io } = context;
      const within = flags["within"] as string | undefined;
      await context.withDoor(flags, async (door) => {
        let cursor: string | undefined;
        let none = true;
        do {
          const found = await door.perform(horizon, { within, limit: LIMITS.page_max, cursor });
          none = none && found.undos.length === 0;
          if (flags["json"]) for (const undo of found.undos) io.out(JSON.stringify(undo));
          else {
            const now = door.clock.now();
            const rows = found.undos.map(({ run_id, step, tool, closes_ms }) => [
              run_id,
              `step ${step}`,
              printable(tool),
              new Date(closes_ms).toISOString(),
              `in ${showDuration(Math.max(0, closes_ms - now))}`,
            ]);
            for (const row of columns(rows)) io.out(row);
          }
          cursor = found.next_cursor ?? undefined;
        } while (cursor !== undefined);
        if (none && !flags["json"])
          io.err(within === undefined ? "no undo closes" : `no undo closes within ${printable(within)}`);
      });
    });
};
