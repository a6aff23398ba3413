/** `svc runs`: the runs of a store, oldest first. */
import { LIMITS } from "../../kernel/limits.ts";
import { plural } from "../../kernel/plural.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Store } from "../../store/port.ts";
import { globalOptions, type Register } from "../context.ts";
import { inert, table } from "../io.ts";

export const registerRuns: Register = (program, context) => {
  globalOptions(program.command("runs").description("list runs"))
    .option("--json", "print one JSON object per run")
    .action(async (flags: Record<string, unknown>) => {
      const { io } = context;
      await context.withApp(flags, async (app) => {
        let none = true;
        for await (const runs of pages(app.core.store)) {
          none = false;
          if (flags["json"]) for (const run of runs) io.out(JSON.stringify(line(run)));
          else for (const row of table(runs.map(cells))) io.out(row);
        }
        if (none && !flags["json"]) io.err("no runs yet");
      });
    });
};

async function* pages(store: Store): AsyncGenerator<RunDoc[]> {
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("runs", { limit: LIMITS.page_max, after });
    if (rows.length > 0) yield rows.map((row) => row.doc);
    const last = rows[rows.length - 1];
    if (rows.length < LIMITS.page_max || last === undefined) return;
    after = { sort: last.sort, key: last.key };
  }
}

function line(run: RunDoc) {
  const { run_id, actor, mode, tenant, created_ms, next_step, open, uncertain } = run;
  return { run_id, actor, mode, tenant, created_ms, steps: next_step, unresolved: open + uncertain };
}

function cells(run: RunDoc): string[] {
  const { run_id, actor, mode, created_ms, steps, unresolved } = line(run);
  const state = unresolved > 0 ? `${unresolved} unresolved` : "";
  return [run_id, new Date(created_ms).toISOString(), inert(actor), mode, plural(steps, "step"), state];
}
