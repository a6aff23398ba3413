/** The period report as PDF: the figures, a bar chart of the calls per day, and the tables. */
import { clipText } from "../../../kernel/text/phrases.ts";
import { forPlainFont, toIsoTime } from "../external-text.ts";
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
} from "../pdf-page.ts";
import { daysChartBars } from "./days-chart.ts";
import type { PeriodReport } from "./period.ts";
import { keyFigures, type ReportCell, type ReportSection, reportSections } from "./period-rows.ts";

const CARDS_A_ROW = 5;
const CARD_HEIGHT = 40;
const CHART_HEIGHT = 110;
const ACCEPTED = "#4d7cc3";
const BLOCKED = "#cf5a50";
/** Cell limit in characters. Real names and reasons are shorter. */
const MAX_CELL_CHARS = 300;

export function periodReportPdf(report: PeriodReport): Promise<Uint8Array> {
  const span = `${toIsoTime(report.since_ms).slice(0, 10)} to ${toIsoTime(report.until_ms).slice(0, 10)}`;
  const about = {
    title: `Period report ${span}`,
    author: report.made_by,
    made_ms: report.until_ms,
    footer: `Period report ${span}, ledger head ${report.ledger.head.slice(0, 16)}`,
  };
  return renderPdf(about, async (doc) => {
    doc.font("Helvetica-Bold").fontSize(18).fillColor(TEXT_COLOR).text("Period report");
    drawLine(doc, `${toIsoTime(report.since_ms)} to ${toIsoTime(report.until_ms)}`, MUTED_COLOR);
    cards(doc, keyFigures(report));
    drawHeading(doc, "Calls per day");
    chart(doc, report);
    for (const section of reportSections(report)) await table(doc, section);
    drawHeading(doc, "About this report");
    drawPair(doc, "Records", `${report.ledger.in_period} of ${report.ledger.records}`);
    drawPair(doc, "Ledger head", report.ledger.head);
    drawPair(doc, "Environment", report.environment ?? "none");
    drawPair(doc, "Data region", report.region ?? "not configured");
    drawPair(doc, "Made by", report.made_by);
  });
}

const widthOf = (doc: PdfDoc): number => doc.page.width - 2 * PAGE_MARGIN;

function cards(doc: PdfDoc, figures: readonly [label: string, value: string][]): void {
  doc.moveDown(0.6);
  const width = widthOf(doc) / CARDS_A_ROW;
  const top = doc.y;
  for (const [i, [label, value]] of figures.entries()) {
    const x = PAGE_MARGIN + (i % CARDS_A_ROW) * width;
    const y = top + Math.floor(i / CARDS_A_ROW) * CARD_HEIGHT;
    doc
      .font("Helvetica-Bold")
      .fontSize(13)
      .fillColor(TEXT_COLOR)
      .text(value, x, y, { width, lineBreak: false });
    doc
      .font("Helvetica")
      .fontSize(7.5)
      .fillColor(MUTED_COLOR)
      .text(label, x, y + 17, { width, lineBreak: false });
  }
  doc.x = PAGE_MARGIN;
  doc.y = top + Math.ceil(figures.length / CARDS_A_ROW) * CARD_HEIGHT;
}

const STRIPE_GAP = 5;

/** Blocked calls are striped, so that the chart is readable without color. */
function stripedBar(doc: PdfDoc, bar: Record<"x" | "y" | "width" | "height", number>): void {
  const { x, y, width, height } = bar;
  doc.save().rect(x, y, width, height).clip();
  doc.rect(x, y, width, height).fill(BLOCKED);
  for (let at = -height; at < width; at += STRIPE_GAP)
    doc.moveTo(x + at, y + height).lineTo(x + at + height, y);
  doc.lineWidth(1.2).strokeColor("#ffffff").stroke().restore();
}

/** Draws one bar per day, blocked calls on top of accepted ones. The scale is given as text. */
function chart(doc: PdfDoc, report: PeriodReport): void {
  ensurePageSpace(doc, CHART_HEIGHT + 30);
  const { bars, most, days_each } = daysChartBars(report.per_day);
  const slot = widthOf(doc) / Math.max(1, bars.length);
  const bottom = doc.y + CHART_HEIGHT;
  for (const [i, { accepted, blocked }] of bars.entries()) {
    const width = Math.min(slot * 0.8, 40);
    const x = PAGE_MARGIN + i * slot + (slot - width) / 2;
    const low = (accepted / most) * CHART_HEIGHT;
    const high = (blocked / most) * CHART_HEIGHT;
    if (accepted > 0) doc.rect(x, bottom - low, width, low).fill(ACCEPTED);
    if (blocked > 0) stripedBar(doc, { x, y: bottom - low - high, width, height: high });
  }
  doc
    .moveTo(PAGE_MARGIN, bottom)
    .lineTo(doc.page.width - PAGE_MARGIN, bottom)
    .lineWidth(0.7)
    .strokeColor("#d9dee6")
    .stroke();
  doc.x = PAGE_MARGIN;
  doc.y = bottom + 4;
  const span = bars.length === 0 ? "no days" : `${bars[0]!.from} to ${bars.at(-1)!.to}`;
  const each = days_each === 1 ? "" : `, ${days_each} days per bar`;
  drawLine(
    doc,
    `${span}${each}; blue: accepted, red and striped: blocked; the highest bar is ${most}`,
    MUTED_COLOR,
  );
}

/** In a narrow column, a time breaks between its day and its hour. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:)/;

async function table(doc: PdfDoc, { title, note, columns, rows, none }: ReportSection): Promise<void> {
  drawHeading(doc, title);
  if (columns === null) {
    for (const [name, value] of rows) drawPair(doc, words(name!), words(value!));
    return;
  }
  if (rows.length === 0) return drawLine(doc, none, MUTED_COLOR);
  const width = widthOf(doc) / (columns.length + 1);
  const at = (i: number) => PAGE_MARGIN + (i === 0 ? 0 : (i + 1) * width);
  const head = () => row(columns, "Helvetica-Bold", MUTED_COLOR);
  const row = (cells: readonly string[], font: string, color: string) => {
    const shown = cells.map((cell) => forPlainFont(clipText(cell, MAX_CELL_CHARS)).replace(TIME, "$1 $2"));
    doc.font(font).fontSize(8);
    const widths = cells.map((_, i) => (i === 0 ? 2 * width : width) - 6);
    const height = Math.max(...shown.map((cell, i) => doc.heightOfString(cell, { width: widths[i]! })));
    const { page } = doc;
    ensurePageSpace(doc, height + 3);
    if (doc.page !== page && cells !== columns) {
      head();
      doc.font(font).fontSize(8);
    }
    const { y } = doc;
    for (const [i, cell] of shown.entries()) doc.fillColor(color).text(cell, at(i), y, { width: widths[i]! });
    doc.x = PAGE_MARGIN;
    doc.y = y + height + 3;
  };
  head();
  await drawEach(rows, (cells) => row(cells.map(words), "Helvetica", TEXT_COLOR));
  if (note !== undefined) drawLine(doc, note, MUTED_COLOR);
}

function words(cell: ReportCell): string {
  if ("number" in cell) return String(cell.number);
  return "name" in cell ? cell.name : cell.text;
}
