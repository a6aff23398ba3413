/** PDF of an incident: facts, remaining tasks and timeline. */

import { toIsoTime } from "../../evidence/report/external-text.ts";
import {
  drawEach,
  drawHeading,
  drawLine,
  drawPair,
  MUTED_COLOR,
  renderPdf,
  TEXT_COLOR,
} from "../../evidence/report/pdf-page.ts";
import { clipText } from "../../kernel/text/phrases.ts";
import { incidentFacts, noTasksText, OLDER_PERMANENT, timelineText } from "./formats.ts";
import { permanentStepText } from "./permanent-steps.ts";
import type { IncidentReport } from "./report.ts";
import { incidentTaskTitle } from "./tasks.ts";

const LINE_CHARS = 600;
/** Runs named in the facts. The timeline names them too. */
const RUNS_NAMED = 12;

export function incidentPdf(report: IncidentReport): Promise<Uint8Array> {
  const { id, made_by, generated_ms, tasks, alerts, notes, timeline, causes, cannot_undo } = report;
  const about = { title: `Incident ${id}`, author: made_by, made_ms: generated_ms, footer: `Incident ${id}` };
  return renderPdf(about, async (doc) => {
    doc.font("Helvetica-Bold").fontSize(18).fillColor(TEXT_COLOR).text("Incident");
    for (const [name, value] of incidentFacts(report, RUNS_NAMED))
      drawPair(doc, name, clipText(value, LINE_CHARS));
    drawHeading(doc, "Causes");
    await drawEach(causes, ({ at_ms, text }) =>
      drawLine(doc, `${toIsoTime(at_ms)}  ${clipText(text, LINE_CHARS)}`),
    );
    drawHeading(doc, "Remaining tasks");
    if (tasks.length === 0) drawLine(doc, noTasksText(report), MUTED_COLOR);
    await drawEach(tasks, ({ text, command, ...task }) => {
      drawLine(doc, `${incidentTaskTitle(task)}: ${text}`);
      drawLine(doc, command, MUTED_COLOR, 12);
    });
    drawHeading(doc, "Cannot be undone");
    if (report.cannot_undo_more) drawLine(doc, OLDER_PERMANENT, MUTED_COLOR);
    if (cannot_undo.length === 0) drawLine(doc, "None.", MUTED_COLOR);
    await drawEach(cannot_undo, ({ at_ms, ...step }) =>
      drawLine(doc, `${toIsoTime(at_ms)}  ${permanentStepText(step)}`),
    );
    drawHeading(doc, "Alerts");
    if (alerts.length === 0) drawLine(doc, "None.", MUTED_COLOR);
    await drawEach(alerts, ({ title, message, since_ms }) =>
      drawLine(doc, `${toIsoTime(since_ms)}  ${title}: ${clipText(message, LINE_CHARS)}`),
    );
    drawHeading(doc, "Notes");
    if (notes.length === 0) drawLine(doc, "None.", MUTED_COLOR);
    await drawEach(notes, ({ kind, by, at_ms, text }) => {
      const [first, ...rest] = text.split("\n");
      drawLine(doc, `${toIsoTime(at_ms)}  ${kind} by ${by}: ${first}`);
      for (const line of rest) drawLine(doc, line, TEXT_COLOR, 12);
    });
    drawHeading(doc, "Timeline");
    if (report.more) drawLine(doc, "Older lines are left out. Export the runs for all of them.", MUTED_COLOR);
    await drawEach(timeline, (entry) =>
      drawLine(doc, `${toIsoTime(entry.at_ms)}  ${clipText(timelineText(entry), LINE_CHARS)}`),
    );
  });
}
