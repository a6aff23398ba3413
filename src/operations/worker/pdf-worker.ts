/** Thread that lays out the PDF of a run's report. It has no store; the host sends it the report. */
import { serveThread } from "../../child-process/thread-pool.ts";
import type { RunReport } from "../../evidence/report/run.ts";
import { runReportPdf } from "../../evidence/report/run-pdf.ts";

serveThread(() => ({
  work: (report: string) => runReportPdf(JSON.parse(report) as RunReport),
}));
