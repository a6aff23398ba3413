/** `svc runs`: the runs of a store, oldest first, with why they were opened and how they stand. */
import type { z } from "zod";
import type { FoundRun } from "../../app/operations/search/run-search.ts";
import { searchRuns } from "../../app/operations/search.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { plural } from "../../kernel/words.ts";
import { ATTENTION, globalOptions, type Register } from "../context.ts";
import type { Door } from "../door.ts";
import { columnsOf, fitted } from "../fit.ts";
import { columns, type Io, printable } from "../io.ts";

/** Which runs, in the words of the search. */
type Wanted = Partial<z.input<typeof searchRuns.input>>;

export const registerRuns: Register = (program, context) => {
  globalOptions(program.command("runs").description("list runs"))
    .option("--actor <name>", "only those that this agent opened")
    .option("--tool <name>", "only those that called this tool")
    .option("--tenant <name>", "only those of this tenant")
    .option("--status <status>", "only those with a step of this status, such as failed")
    .option("--since <time>", "only those opened since: a duration such as 7d, or a date")
    .option("--until <time>", "only those opened until then")
    .option("--attention", "only those that need a person")
    .option("--find <text>", "only those with this text in their id, actor, tenant or reason")
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
        if (!none && wanted.attention === true) context.done(ATTENTION);
        if (none && !flags["json"]) io.err(Object.keys(wanted).length === 0 ? "no runs yet" : "no run fits");
      });
    });
};

function wantedOf(flags: Record<string, unknown>): Wanted {
  const { actor, tool, tenant, status, since, until, attention, find: q } = flags;
  const given = Object.entries({ actor, tool, tenant, status, since, until, attention, q });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

async function* pages(door: Door, wanted: Wanted): AsyncGenerator<FoundRun[]> {
  let cursor: string | undefined;
  do {
    const page = { ...wanted, order: "asc", limit: LIMITS.page_max, cursor } as const;
    const found = await door.perform(searchRuns, page);
    if (found.runs.length > 0) yield found.runs;
    cursor = found.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** Those in which a call failed, which a run does not count. */
async function failedRuns(door: Door, wanted: Wanted): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const runs of pages(door, { ...wanted, status: "failed" }))
    for (const { run_id } of runs) found.add(run_id);
  return found;
}

function print(io: Io, runs: readonly FoundRun[], failed: ReadonlySet<string>): void {
  const { red, yellow } = io.color;
  const lines = columns(runs.map((run) => cells(run, failed.has(run.run_id))));
  for (const [i, line] of lines.entries()) {
    const { attention, run_id } = runs[i]!;
    const paint = attention ? yellow : failed.has(run_id) ? red : (text: string) => text;
    io.out(paint(fitted(line, columnsOf(io))));
  }
}

function cells(run: FoundRun, failed: boolean): string[] {
  const { run_id, actor, mode, created_ms, steps, unresolved, attention, reason } = run;
  const state = [
    unresolved > 0 ? `${unresolved} unresolved` : "",
    failed ? "failed" : "",
    attention ? "needs attention: svc show" : "",
  ];
  return [
    run_id,
    new Date(created_ms).toISOString(),
    printable(actor),
    mode,
    plural(steps, "step"),
    state.filter((word) => word !== "").join(", "),
    printable(reason ?? ""),
  ];
}
