/** Reports for people: one run as a page or a PDF, and a period in three formats. */
import * as z from "zod";
import { paced } from "../../evidence/report/page.ts";
import { collectPeriodReport, type PeriodReport } from "../../evidence/report/period.ts";
import { PERIOD_FORMATS, PERIOD_TYPES, writePeriodReport } from "../../evidence/report/period-formats.ts";
import { periodReportPdf } from "../../evidence/report/period-pdf.ts";
import { collectRunReport, type RunReport } from "../../evidence/report/run.ts";
import { runReportParts } from "../../evidence/report/run-html.ts";
import { runReportPdf } from "../../evidence/report/run-pdf.ts";
import { parseSince } from "../../kernel/duration.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { App } from "../app.ts";
import { Content, operation } from "../door/operation.ts";
import { ofRun } from "./schemas.ts";
import { findRuns } from "./search/run-search.ts";

export const DEFAULT_PERIOD = "7d";

/** The facts of a run's report as they are now. */
function reportRun({ core, settings, version }: App, run_id: string): Promise<RunReport> {
  const region = settings.egress.region ?? null;
  return collectRunReport(core.store, run_id, {
    now_ms: core.env.now(),
    version,
    region,
    policy: core.rules().policy.hash,
  });
}

/** The facts of a period's report; `since` is a duration back from now, a date or a timestamp. */
async function reportPeriod(app: App, since: string): Promise<PeriodReport> {
  const { core, settings, version } = app;
  const until_ms = core.env.now();
  const since_ms = parseSince(since, until_ms, "since");
  const { runs, next } = await findRuns(core, { attention: true, limit: LIMITS.page_max });
  return collectPeriodReport(core.store, {
    since_ms,
    until_ms,
    version,
    environment: settings.environment,
    region: settings.egress.region ?? null,
    policy: core.rules().policy,
    attention: {
      runs: runs.map(({ run_id, actor, created_ms, unresolved }) => ({
        run_id,
        actor,
        created_ms,
        unresolved,
      })),
      more: next !== null,
    },
  });
}

export const runReport = operation({
  id: "run_report",
  reads_replica: true,
  summary: "The report of a run as one HTML page",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["text/html"] },
  errors: { not_found: "unknown run" },
  async run({ app }, { run_id }) {
    const report = await reportRun(app, run_id);
    const problem = report.problem ?? undefined;
    return new Content("text/html; charset=utf-8", paced(runReportParts(report)), undefined, problem);
  },
});

export const runReportAsPdf = operation({
  id: "run_report_pdf",
  reads_replica: true,
  summary: "The report of a run as a PDF on A4",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["application/pdf"] },
  errors: { not_found: "unknown run" },
  async run({ app }, { run_id }) {
    const report = await reportRun(app, run_id);
    const problem = report.problem ?? undefined;
    return new Content("application/pdf", await runReportPdf(report), `${run_id}.report.pdf`, problem);
  },
});

export const periodReport = operation({
  id: "period_report",
  reads_replica: true,
  summary: "What happened since a point in time: calls, approvals, rollbacks and what needs attention",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    since: z
      .string()
      .max(64)
      .optional()
      .meta({
        description: `a duration such as 7d, or an ISO 8601 date or timestamp; ${DEFAULT_PERIOD} by default`,
      }),
    format: z
      .enum([...PERIOD_FORMATS, "pdf"])
      .optional()
      .meta({ description: "json by default" }),
  }),
  output: { content_types: ["application/json", "text/html", "text/markdown", "application/pdf"] },
  async run({ app }, { since, format = "json" }) {
    const report = await reportPeriod(app, since ?? DEFAULT_PERIOD);
    if (format === "pdf") return new Content("application/pdf", await periodReportPdf(report), "report.pdf");
    return new Content(PERIOD_TYPES[format], writePeriodReport(report, format));
  },
});
