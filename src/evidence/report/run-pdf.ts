/** The run report as a plain A4 document of text, with its data region and the ledger's head. */
import { plural, sentence } from "../../kernel/words.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { planVerdict } from "../../rollback/plan.ts";
import { type Doc, each, heading, INK, line, MARGIN, pair, paper, room, SOFT } from "./pdf.ts";
import { outlookWords, type ReportStep, type RunReport, residueOf, statusCounts, WITHOUT } from "./run.ts";
import { forPlainFont, time } from "./text.ts";

export function runReportPdf(report: RunReport): Promise<Uint8Array> {
  const about = {
    title: `Run report ${report.run_id}`,
    author: `svc ${report.version}`,
    made_ms: report.generated_ms,
    footer: `Run ${report.run_id}, ledger head ${report.ledger.head.slice(0, 16)}`,
  };
  return paper(about, (doc) => write(doc, report));
}

async function write(doc: Doc, report: RunReport): Promise<void> {
  doc.font("Helvetica-Bold").fontSize(18).fillColor(INK).text("Run report");
  doc.font("Courier").fontSize(10).fillColor(SOFT).text(forPlainFont(report.run_id));
  doc.moveDown(0.6);
  summary(doc, report);
  heading(doc, "Steps");
  if (report.steps.length === 0) line(doc, "No call was accepted.", SOFT);
  await each(report.steps, (step) => stepEntry(doc, step));
  heading(doc, "Approvals");
  const decisions = report.trail.filter(({ event }) => DECISIONS.has(event));
  if (decisions.length === 0) line(doc, "Nothing was decided by a person or expired.", SOFT);
  await each(decisions, (record) => decisionEntry(doc, record));
  const left = report.steps.filter(({ status }) => status === "compensation_failed");
  if (left.length > 0) {
    heading(doc, "Left after an undo that failed");
    await each(left, (step) => {
      room(doc, 24);
      line(doc, `${step.step}  ${step.tool}: what it did still stands`);
      if (step.error !== null) line(doc, `the undo ended with: ${step.error}`, SOFT, 14);
    });
  }
  heading(doc, "Rollback outlook");
  await outlook(doc, report);
  heading(doc, "Event trail");
  if (report.trail.length === 0) line(doc, "The run has no records yet.", SOFT);
  await each(report.trail, (record) => trailEntry(doc, record));
}

const DECISIONS: ReadonlySet<string> = new Set([
  "approved",
  "denied",
  "approval_expired",
  "approval_escalated",
]);

/** Who decided what, and when. */
function decisionEntry(doc: Doc, record: LedgerRecord): void {
  room(doc, 24);
  line(doc, `${time(record.ts_ms)}  ${record.event} by ${record.actor}: ${record.tool ?? "no tool"}`);
  if (record.detail !== undefined) line(doc, record.detail, SOFT, 14);
}

function summary(
  doc: Doc,
  { run, without, trail, steps, problem, region, policy, ledger, generated_ms, version }: RunReport,
): void {
  const actors = [...new Set(trail.map(({ actor }) => actor))];
  const statuses = statusCounts(steps).map(([status, count]) => `${count} ${status}`);
  const rows: [string, string][] = [
    ["Who", run?.actor ?? actors[0] ?? "unknown"],
    ["Also acted", actors.filter((name) => name !== run?.actor).join(", ") || "nobody else"],
    ["Tenant", run?.tenant ?? trail[0]?.tenant ?? "none"],
    ["Environment", run?.environment ?? "none"],
    ["Mode", run?.mode ?? "unknown"],
    ["Why", run?.reason ?? "no reason given"],
    ["Opened", run === null ? "unknown" : time(run.created_ms)],
    ["Permissions", run === null ? "unknown" : run.permissions.join(", ") || "none"],
    ["Steps", statuses.join(", ") || "none"],
    ["Policy in force", policy],
    ["Data region", region ?? "not configured"],
    ["Ledger", plural(ledger.records, "record")],
    ["Ledger head", ledger.head],
    ["Trail", problem === null ? "every hash, link and number holds" : `DOES NOT VERIFY: ${problem}`],
    ["Report made", `${time(generated_ms)} by svc ${version}`],
  ];
  if (without !== null) rows.push(["Note", WITHOUT[without]]);
  for (const [name, value] of rows) pair(doc, name, value);
}

function stepEntry(doc: Doc, step: ReportStep): void {
  room(doc, 42);
  const version = step.manifest_version === null ? "" : `  (manifest ${step.manifest_version})`;
  doc
    .font("Helvetica-Bold")
    .fontSize(9.5)
    .fillColor(INK)
    .text(forPlainFont(`${step.step}  ${step.tool}  -  ${step.status}${version}`), MARGIN);
  const finished = step.finished_ms === null ? "" : `, finished ${time(step.finished_ms)}`;
  const risk = step.risk_score === null ? "" : `, risk ${step.risk_score}`;
  line(
    doc,
    `${step.effect ?? "no manifest"}${risk}; accepted ${time(step.intended_ms)}${finished}`,
    SOFT,
    14,
  );
  if (step.reason !== null) line(doc, `Reason: ${step.reason}`, INK, 14);
  if (step.error !== null) line(doc, `Error: ${step.error}`, INK, 14);
  if (step.unverified) line(doc, "Undone, but not read back", INK, 14);
  doc.moveDown(0.35);
}

async function outlook(doc: Doc, { outlook }: RunReport): Promise<void> {
  if (outlook === null) return line(doc, "Unknown: what an undo would need is not there any more.", SOFT);
  line(doc, `${sentence(planVerdict(outlook).words)}.`);
  doc.moveDown(0.3);
  await each(outlook.actions, (action) => {
    room(doc, 24);
    line(doc, `${action.step}  ${action.tool}: ${outlookWords(action)}`);
    for (const residue of residueOf(action)) line(doc, `would stay behind: ${residue}`, SOFT, 14);
  });
}

function trailEntry(doc: Doc, record: LedgerRecord): void {
  room(doc, 36);
  const what = [record.tool, record.step === undefined ? undefined : `step ${record.step}`].filter(
    (part) => part !== undefined,
  );
  line(
    doc,
    `${record.seq}  ${time(record.ts_ms)}  ${record.event}  by ${record.actor}${what.length === 0 ? "" : `: ${what.join(", ")}`}`,
  );
  if (record.detail !== undefined) line(doc, record.detail, SOFT, 14);
  doc
    .font("Courier")
    .fontSize(7.5)
    .fillColor(SOFT)
    .text(record.hash, MARGIN + 14);
  doc.moveDown(0.4);
}
