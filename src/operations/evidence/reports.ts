/** Reports: one run as HTML or PDF, and a period in three formats. */
import * as z from "zod";
import { pacedParts } from "../../evidence/report/html-page.ts";
import { collectPeriodReport, type PeriodReport } from "../../evidence/report/period/period.ts";
import {
  PERIOD_FORMATS,
  PERIOD_TYPES,
  writePeriodReport,
} from "../../evidence/report/period/period-formats.ts";
import { collectRunReport, type RunReport } from "../../evidence/report/run.ts";
import { runReportParts } from "../../evidence/report/run-html.ts";
import { parseSince } from "../../kernel/duration.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { ServiceApp } from "../app.ts";
import { drawPdf } from "../pdf/host.ts";
import { DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { findRuns } from "../runs/run-search.ts";
import { ofRun } from "../schemas.ts";

export const DEFAULT_PERIOD = "7d";

/** Current facts for a run's report. */
function reportRun({ core, settings, version }: ServiceApp, run_id: string): Promise<RunReport> {
  const region = settings.egress.region ?? null;
  return collectRunReport(core.store, run_id, {
    now_ms: core.env.now(),
    version,
    region,
    policy: core.rules().policy.hash,
  });
}

/** Facts for a period's report. `since` is a duration back from now, a date or a timestamp. */
async function reportPeriod(app: ServiceApp, since: string): Promise<PeriodReport> {
  const { core, settings, version } = app;
  const until_ms = core.env.now();
  const since_ms = parseSince(since, until_ms, "since");
  const { runs, next } = await findRuns(core, { attention: true, limit: SERVICE_LIMITS.page_max });
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

export const runReport = defineOperation({
  id: "run_report",
  reads_replica: true,
  summary: "Download a run's report as one HTML page",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["text/html"] },
  errors: { not_found: "unknown run" },
  async run({ app }, { run_id }) {
    const report = await reportRun(app, run_id);
    const problem = report.problem ?? undefined;
    return new DocumentContent(
      "text/html; charset=utf-8",
      pacedParts(runReportParts(report)),
      undefined,
      problem,
    );
  },
});

export const runReportAsPdf = defineOperation({
  id: "run_report_pdf",
  reads_replica: true,
  summary: "Download a run's report as an A4 PDF",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["application/pdf"] },
  errors: { not_found: "unknown run" },
  async run({ app, signal }, { run_id }) {
    const report = await reportRun(app, run_id);
    const problem = report.problem ?? undefined;
    return new DocumentContent(
      "application/pdf",
      await drawPdf("run", report, signal),
      `${run_id}.report.pdf`,
      problem,
    );
  },
});

export const periodReport = defineOperation({
  id: "period_report",
  reads_replica: true,
  summary: "Report on a period: calls, approvals, rollbacks and runs that need attention",
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
  async run({ app, signal }, { since, format = "json" }) {
    const report = await reportPeriod(app, since ?? DEFAULT_PERIOD);
    if (format === "pdf")
      return new DocumentContent("application/pdf", await drawPdf("period", report, signal), "report.pdf");
    return new DocumentContent(PERIOD_TYPES[format], writePeriodReport(report, format));
  },
});
