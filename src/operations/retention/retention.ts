/** Retention: lists runs that are due and deletes them. It runs only on request; there is no timer. */
import * as z from "zod";
import { type ApplyReport, applyRetention } from "../../retention/apply.ts";
import { type PlannedRun, planRetention } from "../../retention/plan.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { cutPage, type ListPosition, positionOf } from "../cursor.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { boundedText, pagingFields } from "../schemas.ts";
import { createArchiver } from "./archiving.ts";
import { retentionFeature } from "./holds.ts";

const MAX_RETENTION_DAYS = 36_500;
const days = z
  .int()
  .min(1, "must be a positive whole number of days")
  .max(MAX_RETENTION_DAYS, `at most ${MAX_RETENTION_DAYS} days`);

const planInput = z.strictObject({ days: days.optional(), ...pagingFields });

interface RetentionInput {
  days?: number | undefined;
  dry_run?: boolean | undefined;
  archive_dir?: string | undefined;
}

/** Settings shared by plan and apply. */
function settingsOf(app: ServiceApp, input: RetentionInput) {
  // The section existed when the operation was enabled. If it has been removed since, nothing is due.
  const rules = app.core.rules().policy.retention ?? { default_days: Number.MAX_SAFE_INTEGER };
  return { rules, days: input.days, can_archive: input.archive_dir !== undefined && app.signing !== null };
}

async function retentionPlan(app: ServiceApp, input: z.infer<typeof planInput>) {
  const { limit = Number.POSITIVE_INFINITY, cursor } = input;
  const rows: (ListPosition & { planned: PlannedRun })[] = [];
  for await (const planned of planRetention(app.core, settingsOf(app, input), positionOf(cursor))) {
    rows.push({ sort: planned.run.created_ms, key: planned.run.run_id, planned });
    if (rows.length > limit) break;
  }
  const { page, next } = cutPage(rows, limit);
  const runs = page.map(({ planned: { run, age_days, keep_days, decision, hold } }) => {
    return { run_id: run.run_id, age_days, keep_days, decision, hold_id: hold?.id ?? null };
  });
  return { runs, next_cursor: next };
}

async function retentionApply(
  { app, principal }: Pick<ApiCaller, "app" | "principal">,
  input: RetentionInput,
): Promise<ApplyReport> {
  const { archive_dir, dry_run = false } = input;
  const archive = await createArchiver(app, { archive_dir, dry_run });
  const settings = settingsOf(app, input);
  const report = await applyRetention(app.core, { ...settings, by: principal.name, dry_run, archive });
  for (const run_id of report.deleted) app.runFacts.delete(run_id);
  if (report.deleted.length > 0) {
    const { deleted, archived } = report;
    app.notifier?.notify({ event: "retention_purged", runs: deleted, archived, by: principal.name });
  }
  return report;
}

export const getRetentionPlan = defineOperation({
  id: "retention_plan",
  summary: "List the retention decision for each run",
  role: "auditor",
  within_tenant: true,
  input: planInput,
  output: z.strictObject({
    runs: z.array(
      z.strictObject({
        run_id: z.string(),
        age_days: z.int(),
        keep_days: z.int(),
        decision: z.string(),
        hold_id: nullableSchema(z.string()),
      }),
    ),
    next_cursor: nullableSchema(z.string()),
  }),
  feature: retentionFeature,
  errors: { not_found: "no retention settings" },
  run: ({ app }, input) => retentionPlan(app, input),
});

export const runRetention = defineOperation({
  id: "retention_apply",
  summary: "Delete the working data of due runs; the ledger stays",
  role: "admin",
  input: z.strictObject({
    dry_run: z.boolean().optional(),
    days: days.optional(),
    archive_dir: boundedText(4_096).optional(),
  }),
  output: z.strictObject({
    deleted: z.array(z.string()),
    would_delete: z.array(z.string()),
    kept: z.array(z.strictObject({ run_id: z.string(), reason: z.string() })),
    archived: z.array(z.string()),
  }),
  feature: retentionFeature,
  errors: { not_found: "no retention settings" },
  run: (caller, input) => retentionApply(caller, input),
});
