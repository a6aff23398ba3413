/**
 * Lays out reports as PDF in a separate thread: the library is large, text layout is slow, and pages are compressed.
 * This process only writes the report as text, with pauses.
 */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import type { PeriodReport } from "../../evidence/report/period/period.ts";
import type { RunReport } from "../../evidence/report/run.ts";
import { SvcError } from "../../kernel/errors.ts";
import { asJson } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";
import type { IncidentReport } from "../incidents/report.ts";

/** What can be laid out, by kind. */
export interface PdfReports {
  run: RunReport;
  period: PeriodReport;
  incident: IncidentReport;
}

/** What the thread receives: `report` is JSON text. */
export interface PdfTask {
  kind: keyof PdfReports;
  report: string;
}

/** Further reports wait, up to this number; after that they are rejected. */
const MAX_WAITING = 16;

const threads = new ThreadPool({
  name: "the PDF thread",
  entry: entryModule("operations/pdf/worker"),
  most: 1,
  resourceLimits: { maxOldGenerationSizeMb: 1_024 },
});

export async function drawPdf<K extends keyof PdfReports>(
  kind: K,
  report: PdfReports[K],
  signal: AbortSignal,
): Promise<Uint8Array> {
  const text = await runInSlices(jsonTextInSteps(asJson(report)));
  if (threads.waiting >= MAX_WAITING)
    throw new SvcError("too_many", "too many PDF reports are in progress; try again later");
  return threads.ask<Uint8Array>({ kind, report: text } satisfies PdfTask, { signal });
}
