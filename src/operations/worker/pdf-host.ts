/**
 * Lays out the PDF of a run's report. Text layout is slow and its pages are compressed, so a long report is laid out in
 * a separate thread. This process only writes the report as text, with pauses.
 */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import type { RunReport } from "../../evidence/report/run.ts";
import { runReportPdf } from "../../evidence/report/run-pdf.ts";
import { SvcError } from "../../kernel/errors.ts";
import { asJson } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";

/** Entries of a report that is laid out in place. A thread takes a tenth of a second to start. */
const FEW_ENTRIES = 100;
/** Further reports wait, up to this number; after that they are rejected. */
const MAX_WAITING = 16;

const threads = new ThreadPool({
  name: "the PDF thread",
  entry: entryModule("operations/worker/pdf-worker"),
  most: 1,
  resourceLimits: { maxOldGenerationSizeMb: 1_024 },
});

/** Number of entries that the layout draws. */
export const entriesOf = ({ steps, trail, outlook }: RunReport): number =>
  steps.length + trail.length + (outlook?.actions.length ?? 0);

export async function drawRunReport(report: RunReport, signal: AbortSignal): Promise<Uint8Array> {
  if (entriesOf(report) <= FEW_ENTRIES) return runReportPdf(report);
  const text = await runInSlices(jsonTextInSteps(asJson(report)));
  if (threads.waiting >= MAX_WAITING)
    throw new SvcError("too_many", "too many PDF reports are in progress; try again later");
  return threads.ask<Uint8Array>(text, { signal });
}
