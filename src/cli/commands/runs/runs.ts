/** `svc runs`: lists runs, oldest first, with their reason and status. */
import type { z } from "zod";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { FoundRun } from "../../../operations/runs/run-search.ts";
import { searchRuns } from "../../../operations/runs/search.ts";
import { EXIT_NEEDS_ATTENTION, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";
import { terminalWidth, truncateLine } from "../../truncate.ts";

/** Filters of the run search. */
type Wanted = Partial<z.input<typeof searchRuns.input>>;

export const registerRuns: RegisterCommand = (program, context) => {
  globalOptions(program.command("runs").description("List runs"))
    .option("--actor <name>", "only runs of this agent")
    .option("--tool <name>", "only runs that called this tool")
    .option("--tenant <name>", "only runs of this tenant")
    .option("--status <status>", "only runs with a step of this status, such as failed")
    .option("--since <time>", "only runs opened since then: a duration such as 7d, or a date")
    .option("--until <time>", "only runs opened until then")
    .option("--attention", "only runs that need attention")
    .option("--find <text>", "only runs with this text in their id, actor, tenant or reason")
    .option("--json", "print one JSON object per run")
    .action(async (flags: Record<string, unknown>) => {
      const { io } = context;
      const wanted = wantedOf(flags);
      await context.withDoor(flags, async (door) => {
        const failed = flags["json"] ? new Set<string>() : await failedRuns(door, wanted);
        let none = true;
        for await (const runs of pages(door, wanted)) {
          none = false;
          if (flags["json"]) for (const { attention: _, ...run } of runs) io.out(JSON.stringify(run));
          else print(io, runs, failed);
        }
        if (!none && wanted.attention === true) context.done(EXIT_NEEDS_ATTENTION);
        if (none && !flags["json"])
          io.err(Object.keys(wanted).length === 0 ? "no runs yet" : "no matching runs");
      });
    });
};

function wantedOf(flags: Record<string, unknown>): Wanted {
  const { actor, tool, tenant, status, since, until, attention, find: q } = flags;
  const given = Object.entries({ actor, tool, tenant, status, since, until, attention, q });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

async function* pages(door: OperationClient, wanted: Wanted): AsyncGenerator<FoundRun[]> {
  let cursor: string | undefined;
  do {
    const page = { ...wanted, order: "asc", limit: SERVICE_LIMITS.page_max, cursor } as const;
    const found = await door.perform(searchRuns, page);
    if (found.runs.length > 0) yield found.runs;
    cursor = found.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** Ids of runs with a failed step. The list of runs has no such count. */
async function failedRuns(door: OperationClient, wanted: Wanted): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const runs of pages(door, { ...wanted, status: "failed" }))
    for (const { run_id } of runs) found.add(run_id);
  return found;
}

function print(io: CommandIo, runs: readonly FoundRun[], failed: ReadonlySet<string>): void {
  const { red, yellow } = io.color;
  const lines = alignColumns(runs.map((run) => cells(run, failed.has(run.run_id))));
  for (const [i, line] of lines.entries()) {
    const { attention, run_id } = runs[i]!;
    const paint = attention ? yellow : failed.has(run_id) ? red : (text: string) => text;
    io.out(paint(truncateLine(line, terminalWidth(io))));
  }
}

function cells(run: FoundRun, failed: boolean): string[] {
  const { run_id, actor, mode, created_ms, steps, unresolved, state: runState, reason } = run;
  const state = [runState, unresolved > 0 ? `${unresolved} unresolved` : "", failed ? "a step failed" : ""];
  return [
    run_id,
    new Date(created_ms).toISOString(),
    escapeControls(actor),
    mode,
    formatCountOf(steps, "step"),
    state.filter((word) => word !== "").join(", "),
    escapeControls(reason ?? ""),
  ];
}
