/** The run report as a plain A4 text document, with its data region and the ledger head. */
import { capitalizeFirst, formatCountOf } from "../../kernel/text/phrases.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { planVerdict } from "../../rollback/plan/plan.ts";
import { forPlainFont, toIsoTime } from "./external-text.ts";
import {
  drawEach,
  drawHeading,
  drawLine,
  drawPair,
  ensurePageSpace,
  MUTED_COLOR,
  PAGE_MARGIN,
  type PdfDoc,
  renderPdf,
  TEXT_COLOR,
} from "./pdf-page.ts";
import {
  MISSING_DATA_TEXT,
  outlookWords,
  type ReportStep,
  type RunReport,
  residueOf,
  statusCounts,
} from "./run.ts";

export function runReportPdf(report: RunReport): Promise<Uint8Array> {
  const about = {
    title: `Run report ${report.run_id}`,
    author: `svc ${report.version}`,
    made_ms: report.generated_ms,
    footer: `Run ${report.run_id}, ledger head ${report.ledger.head.slice(0, 16)}`,
  };
  return renderPdf(about, (doc) => write(doc, report));
}

async function write(doc: PdfDoc, report: RunReport): Promise<void> {
  doc.font("Helvetica-Bold").fontSize(18).fillColor(TEXT_COLOR).text("Run report");
  doc.font("Courier").fontSize(10).fillColor(MUTED_COLOR).text(forPlainFont(report.run_id));
  doc.moveDown(0.6);
  summary(doc, report);
  drawHeading(doc, "Steps");
  if (report.steps.length === 0) drawLine(doc, "No call was accepted.", MUTED_COLOR);
  await drawEach(report.steps, (step) => stepEntry(doc, step));
  drawHeading(doc, "Approvals");
  const decisions = report.trail.filter(({ event }) => DECISIONS.has(event));
  if (decisions.length === 0) drawLine(doc, "No decisions and no expired requests.", MUTED_COLOR);
  await drawEach(decisions, (record) => decisionEntry(doc, record));
  const left = report.steps.filter(({ status }) => status === "compensation_failed");
  if (left.length > 0) {
    drawHeading(doc, "Left after an undo that failed");
    await drawEach(left, (step) => {
      ensurePageSpace(doc, 24);
      drawLine(doc, `${step.step}  ${step.tool}: its effect is not undone`);
      if (step.error !== null) drawLine(doc, `the undo ended with: ${step.error}`, MUTED_COLOR, 14);
    });
  }
  drawHeading(doc, "Rollback outlook");
  await outlook(doc, report);
  drawHeading(doc, "Event trail");
  if (report.trail.length === 0) drawLine(doc, "The run has no records yet.", MUTED_COLOR);
  await drawEach(report.trail, (record) => trailEntry(doc, record));
}

const DECISIONS: ReadonlySet<string> = new Set([
  "approved",
  "denied",
  "approval_expired",
  "approval_escalated",
]);

/** One decision: its author, verdict and time. */
function decisionEntry(doc: PdfDoc, record: LedgerRecord): void {
  ensurePageSpace(doc, 24);
  drawLine(
    doc,
    `${toIsoTime(record.ts_ms)}  ${record.event} by ${record.actor}: ${record.tool ?? "no tool"}`,
  );
  if (record.detail !== undefined) drawLine(doc, record.detail, MUTED_COLOR, 14);
}

function summary(
  doc: PdfDoc,
  { run, without, trail, steps, problem, region, policy, ledger, generated_ms, version }: RunReport,
): void {
  const actors = [...new Set(trail.map(({ actor }) => actor))];
  const statuses = statusCounts(steps).map(([status, count]) => `${count} ${status}`);
  const rows: [string, string][] = [
    ["Who", run?.actor ?? actors[0] ?? "unknown"],
    ...(run?.acting === undefined ? [] : [["Acting for them", run.acting.join(", ")] as [string, string]]),
    ["Also acted", actors.filter((name) => name !== run?.actor).join(", ") || "nobody else"],
    ["Tenant", run?.tenant ?? trail[0]?.tenant ?? "none"],
    ["Environment", run?.environment ?? "none"],
    ["Mode", run?.mode ?? "unknown"],
    ["Why", run?.reason ?? "no reason given"],
    ["Opened", run === null ? "unknown" : toIsoTime(run.created_ms)],
    ["Permissions", run === null ? "unknown" : run.permissions.join(", ") || "none"],
    ["Steps", statuses.join(", ") || "none"],
    ["Active policy", policy],
    ["Data region", region ?? "not configured"],
    ["Ledger", formatCountOf(ledger.records, "record")],
    ["Ledger head", ledger.head],
    ["Trail", problem === null ? "every hash, link and number holds" : `DOES NOT VERIFY: ${problem}`],
    ["Report made", `${toIsoTime(generated_ms)} by svc ${version}`],
  ];
  if (without !== null) rows.push(["Note", MISSING_DATA_TEXT[without]]);
  for (const [name, value] of rows) drawPair(doc, name, value);
}

function stepEntry(doc: PdfDoc, step: ReportStep): void {
  ensurePageSpace(doc, 42);
  const version = step.manifest_version === null ? "" : `  (manifest ${step.manifest_version})`;
  doc
    .font("Helvetica-Bold")
    .fontSize(9.5)
    .fillColor(TEXT_COLOR)
    .text(forPlainFont(`${step.step}  ${step.line ?? step.tool}  -  ${step.status}${version}`), PAGE_MARGIN);
  const finished = step.finished_ms === null ? "" : `, finished ${toIsoTime(step.finished_ms)}`;
  const risk = step.risk_score === null ? "" : `, risk ${step.risk_score}`;
  drawLine(
    doc,
    `${step.line === undefined ? "" : `${step.tool}, `}${step.effect ?? "no manifest"}${risk}; accepted ${toIsoTime(step.intended_ms)}${finished}`,
    MUTED_COLOR,
    14,
  );
  if (step.reason !== null) drawLine(doc, `Reason: ${step.reason}`, TEXT_COLOR, 14);
  if (step.error !== null) drawLine(doc, `Error: ${step.error}`, TEXT_COLOR, 14);
  if (step.effect_check !== undefined) drawLine(doc, capitalizeFirst(step.effect_check), TEXT_COLOR, 14);
  if (step.unverified) drawLine(doc, "Undone, but not read back", TEXT_COLOR, 14);
  doc.moveDown(0.35);
}

async function outlook(doc: PdfDoc, { outlook }: RunReport): Promise<void> {
  if (outlook === null)
    return drawLine(doc, "Unknown: the data for an undo is no longer available.", MUTED_COLOR);
  drawLine(doc, `${capitalizeFirst(planVerdict(outlook).words)}.`);
  doc.moveDown(0.3);
  await drawEach(outlook.actions, (action) => {
    ensurePageSpace(doc, 24);
    drawLine(doc, `${action.step}  ${action.line ?? action.tool}: ${outlookWords(action)}`);
    for (const residue of residueOf(action)) drawLine(doc, `would remain: ${residue}`, MUTED_COLOR, 14);
  });
}

function trailEntry(doc: PdfDoc, record: LedgerRecord): void {
  ensurePageSpace(doc, 36);
  const what = [record.tool, record.step === undefined ? undefined : `step ${record.step}`].filter(
    (part) => part !== undefined,
  );
  drawLine(
    doc,
    `${record.seq}  ${toIsoTime(record.ts_ms)}  ${record.event}  by ${record.actor}${what.length === 0 ? "" : `: ${what.join(", ")}`}`,
  );
  if (record.detail !== undefined) drawLine(doc, record.detail, MUTED_COLOR, 14);
  doc
    .font("Courier")
    .fontSize(7.5)
    .fillColor(MUTED_COLOR)
    .text(record.hash, PAGE_MARGIN + 14);
  doc.moveDown(0.4);
}
