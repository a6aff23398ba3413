/** Compares a client's own transcript with the ledger, so that undecided calls are noticed. */
import * as z from "zod";
import { rowPages } from "../../govern/port/pages.ts";
import { hasRole } from "../../govern/roles.ts";
import { runsBelow } from "../../govern/runs/child-runs.ts";
import { compareCalls, reconcileUnit } from "../../govern/runs/reconcile.ts";
import type { StepDoc } from "../../govern/runs/run.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { announceRecords } from "../app.ts";
import { readRun, requireOwnRun } from "../pipeline/access.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { runId } from "../schemas.ts";

const ref = z.string().min(1, "must not be empty").max(SERVICE_LIMITS.call_ref_chars);
const MAX_TOOL_CHARS = 256;
/** The name of the transcript's kind, such as `claude-code`. It reaches the ledger. */
const SOURCE = /^[a-z0-9][a-z0-9._-]{0,63}$/;

export const reconcileRun = defineOperation({
  id: "reconcile",
  summary: "Compare the calls that a client's transcript names with the run's",
  role: "operator",
  any_role: true,
  input: z.strictObject({
    run_id: runId,
    source: z.string().regex(SOURCE, "lower-case letters, digits, `.`, `_` and `-`, at most 64"),
    calls: z
      .array(
        z.strictObject({
          ref: z.union([ref, z.null()]),
          tool: z.string().min(1).max(MAX_TOOL_CHARS),
          at_ms: z.int().min(0),
          ran: z.boolean(),
        }),
      )
      .max(SERVICE_LIMITS.reconciled_calls, `at most ${SERVICE_LIMITS.reconciled_calls} calls`),
  }),
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({
    asked: z.int(),
    ran: z.int(),
    ungoverned: z.array(
      z.strictObject({ ref: nullableSchema(z.string()), tool: z.string(), at_ms: z.int() }),
    ),
    unused: z.array(
      z.strictObject({
        run_id: z.string(),
        step: z.int(),
        ref: nullableSchema(z.string()),
        tool: z.string(),
        at_ms: z.int(),
      }),
    ),
  }),
  errors: { not_found: "unknown run, or another agent's" },
  async run({ app, principal }, { run_id, source, calls }) {
    if (!hasRole(principal, "operator")) await requireOwnRun(app, principal, run_id);
    const root = await readRun(app, run_id);
    const steps: StepDoc[] = [];
    // Hooks open sub-agents as child runs, and the client's transcripts name their calls too.
    for (const run of [run_id, ...(await runsBelow(app.core.store, root))])
      for await (const rows of rowPages(app.core.store, "steps", { owner: run }))
        for (const { doc } of rows) steps.push(doc);
    const { manifests } = app.core.rules();
    const comparison = compareCalls(steps, calls, (name) => manifests.all.some(({ tool }) => tool === name));
    const reported = { source, by: principal.name, comparison };
    const record = await app.core.store.transact(reconcileUnit(app.core, run_id, reported));
    announceRecords(app.core.listeners, [record]);
    return comparison;
  },
});
