/** `svc runs`: the runs of a store, oldest first. */
import { searchRuns } from "../../app/operations/search.ts";
import type { FoundRun } from "../../app/run-search.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { plural } from "../../kernel/plural.ts";
import { globalOptions, type Register } from "../context.ts";
import type { Door } from "../door.ts";
import { inert, table } from "../io.ts";

export const registerRuns: Register = (program, context) => {
  globalOptions(program.command("runs").description("list runs"))
    .option("--json", "print one JSON object per run")
    .action(async (flags: Record<string, unknown>) => {
      const { io } = context;
      await context.withDoor(flags, async (door) => {
        let none = true;
        for await (const runs of pages(door)) {
          none = false;
          if (flags["json"]) for (const { attention: _, ...run } of runs) io.out(JSON.stringify(run));
          else for (const row of table(runs.map(cells))) io.out(row);
        }
        if (none && !flags["json"]) io.err("no runs yet");
      });
    });
};

async function* pages(door: Door): AsyncGenerator<FoundRun[]> {
  let cursor: string | undefined;
  do {
    const found = await door.perform(searchRuns, { order: "asc", limit: LIMITS.page_max, cursor });
    if (found.runs.length > 0) yield found.runs;
    cursor = found.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

function cells({ run_id, actor, mode, created_ms, steps, unresolved }: FoundRun): string[] {
  const state = unresolved > 0 ? `${unresolved} unresolved` : "";
  return [run_id, new Date(created_ms).toISOString(), inert(actor), mode, plural(steps, "step"), state];
}
