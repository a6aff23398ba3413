/** The run report as a plain A4 document of text, with its data region and the ledger's head. */
import { setImmediate as nextTurn } from "node:timers/promises";
import PDFDocument from "pdfkit";
import { plural } from "../../kernel/plural.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { planVerdict } from "../../rollback/plan.ts";
import { outlookWords, type ReportStep, type RunReport, residueOf, statusCounts, WITHOUT } from "./run.ts";
import { forPlainFont, sentence, time } from "./text.ts";

type Doc = InstanceType<typeof PDFDocument>;

const MARGIN = 50;
const FOOTER_ROOM = 30;
const INK = "#1c2430";
const SOFT = "#5b6675";
/** How many entries are set before others get a turn: setting text takes time. */
const TURN = 10;

export async function runReportPdf(report: RunReport): Promise<Uint8Array> {
  const doc = new PDFDocument({
    size: "A4",
    margins: { top: MARGIN, left: MARGIN, right: MARGIN, bottom: MARGIN + FOOTER_ROOM },
    bufferPages: true,
    lang: "en",
    displayTitle: true,
    info: {
      Title: forPlainFont(`Run report ${report.run_id}`),
      Author: `svc ${report.version}`,
      CreationDate: new Date(report.generated_ms),
    },
  });
  const chunks: Buffer[] = [];
  doc.on("data", (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise<void>((resolve, reject) => doc.on("end", resolve).on("error", reject));
  await write(doc, report);
  await footers(doc, report);
  doc.end();
  await ended;
  return Buffer.concat(chunks);
}

async function write(doc: Doc, report: RunReport): Promise<void> {
  doc.font("Helvetica-Bold").fontSize(18).fillColor(INK).text("Run report");
  doc.font("Courier").fontSize(10).fillColor(SOFT).text(forPlainFont(report.run_id));
  doc.moveDown(0.6);
  summary(doc, report);
  heading(doc, "Steps");
  if (report.steps.length === 0) line(doc, "No call was accepted.", SOFT);
  await each(report.steps, (step) => stepEntry(doc, step));
  heading(doc, "Rollback outlook");
  await outlook(doc, report);
  heading(doc, "Event trail");
  if (report.trail.length === 0) line(doc, "The run has no records yet.", SOFT);
  await each(report.trail, (record) => trailEntry(doc, record));
}

function summary(
  doc: Doc,
  { run, without, trail, steps, problem, region, ledger, generated_ms, version }: RunReport,
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
    ["Data region", region ?? "not configured"],
    ["Ledger", plural(ledger.records, "record")],
    ["Ledger head", ledger.head],
    ["Trail", problem === null ? "every hash, link and number holds" : `DOES NOT VERIFY: ${problem}`],
    ["Report made", `${time(generated_ms)} by svc ${version}`],
  ];
  if (without !== null) rows.push(["Note", WITHOUT[without]]);
  for (const [name, value] of rows) pair(doc, name, value);
}

const NAME_WIDTH = 92;

function pair(doc: Doc, name: string, value: string): void {
  doc.font("Helvetica").fontSize(9.5);
  const width = doc.page.width - 2 * MARGIN - NAME_WIDTH;
  const shown = forPlainFont(value);
  room(doc, doc.heightOfString(shown, { width }));
  const { y } = doc;
  doc.fillColor(SOFT).text(name, MARGIN, y, { width: NAME_WIDTH, lineBreak: false });
  doc.fillColor(INK).text(shown, MARGIN + NAME_WIDTH, y, { width });
  doc.x = MARGIN;
  doc.moveDown(0.15);
}

function heading(doc: Doc, text: string): void {
  doc.moveDown(0.9);
  room(doc, 60);
  doc.font("Helvetica-Bold").fontSize(12).fillColor(INK).text(text, MARGIN);
  const { y } = doc;
  doc
    .moveTo(MARGIN, y + 2)
    .lineTo(doc.page.width - MARGIN, y + 2)
    .lineWidth(0.7)
    .strokeColor("#d9dee6")
    .stroke();
  doc.moveDown(0.5);
}

function line(doc: Doc, text: string, color = INK, indent = 0): void {
  doc
    .font("Helvetica")
    .fontSize(9.5)
    .fillColor(color)
    .text(forPlainFont(text), MARGIN + indent, doc.y, { width: doc.page.width - 2 * MARGIN - indent });
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

/** Begins a new page when less than this is left on the current one. */
function room(doc: Doc, height: number): void {
  if (doc.y + height > doc.page.height - doc.page.margins.bottom) doc.addPage();
}

async function each<T>(items: readonly T[], set: (item: T) => void): Promise<void> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % TURN === 0) await nextTurn();
    set(item);
  }
}

async function footers(doc: Doc, { run_id, ledger }: RunReport): Promise<void> {
  const { start, count } = doc.bufferedPageRange();
  for (let i = start; i < start + count; i++) {
    if (i % TURN === 0) await nextTurn();
    doc.switchToPage(i);
    // Below the margin; without this pdfkit would begin another page.
    doc.page.margins.bottom = 0;
    const y = doc.page.height - MARGIN;
    const width = doc.page.width - 2 * MARGIN;
    doc.font("Helvetica").fontSize(7.5).fillColor(SOFT);
    doc.text(forPlainFont(`Run ${run_id}, ledger head ${ledger.head.slice(0, 16)}`), MARGIN, y, {
      width,
      lineBreak: false,
    });
    doc.text(`Page ${i - start + 1} of ${count}`, MARGIN, y, { width, align: "right", lineBreak: false });
  }
}
