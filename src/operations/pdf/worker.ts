/** Thread that lays out PDF reports. It has no store; the host sends it the report. */
import { serveThread } from "../../child-process/thread-pool.ts";
import { periodReportPdf } from "../../evidence/report/period/period-pdf.ts";
import { runReportPdf } from "../../evidence/report/run-pdf.ts";
import { incidentPdf } from "../incidents/incident-pdf.ts";
import type { PdfReports, PdfTask } from "./host.ts";

const LAYOUTS: { [K in keyof PdfReports]: (report: PdfReports[K]) => Promise<Uint8Array> } = {
  run: runReportPdf,
  period: periodReportPdf,
  incident: incidentPdf,
};

const layOut = <K extends keyof PdfReports>(kind: K, report: string): Promise<Uint8Array> =>
  LAYOUTS[kind](JSON.parse(report) as PdfReports[K]);

serveThread(() => ({ work: ({ kind, report }: PdfTask) => layOut(kind, report) }));
