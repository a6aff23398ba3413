/** The period report on paper: the figures, the calls of each day as bars, and the tables. */
import { clip } from "../../kernel/words.ts";
import { daysChartBars } from "./days-chart.ts";
import { type Doc, each, heading, INK, line, MARGIN, pair, paper, room, SOFT } from "./pdf.ts";
import type { PeriodReport } from "./period.ts";
import { type Cell, keyFigures, type ReportSection, sections } from "./period-rows.ts";
import { forPlainFont, time } from "./text.ts";

const CARDS_A_ROW = 5;
const CARD_HEIGHT = 40;
const CHART_HEIGHT = 110;
const ACCEPTED = "#4d7cc3";
const BLOCKED = "#cf5a50";
/** A cell is set in as many lines as it takes; what is past this is no name and no reason any more. */
const MOST_CHARS = 300;

export function periodReportPdf(report: PeriodReport): Promise<Uint8Array> {
  const span = `${time(report.since_ms).slice(0, 10)} to ${time(report.until_ms).slice(0, 10)}`;
  const about = {
    title: `Period report ${span}`,
    author: report.made_by,
    made_ms: report.until_ms,
    footer: `Period report ${span}, ledger head ${report.ledger.head.slice(0, 16)}`,
  };
  return paper(about, async (doc) => {
    doc.font("Helvetica-Bold").fontSize(18).fillColor(INK).text("Period report");
    line(doc, `${time(report.since_ms)} to ${time(report.until_ms)}`, SOFT);
    cards(doc, keyFigures(report));
    heading(doc, "Calls per day");
    chart(doc, report);
    for (const section of sections(report)) await table(doc, section);
    heading(doc, "About this report");
    pair(doc, "Records", `${report.ledger.in_period} of ${report.ledger.records}`);
    pair(doc, "Ledger head", report.ledger.head);
    pair(doc, "Environment", report.environment ?? "none");
    pair(doc, "Data region", report.region ?? "not configured");
    pair(doc, "Made by", report.made_by);
  });
}

const widthOf = (doc: Doc): number => doc.page.width - 2 * MARGIN;

function cards(doc: Doc, figures: readonly [label: string, value: string][]): void {
  doc.moveDown(0.6);
  const width = widthOf(doc) / CARDS_A_ROW;
  const top = doc.y;
  for (const [i, [label, value]] of figures.entries()) {
    const x = MARGIN + (i % CARDS_A_ROW) * width;
    const y = top + Math.floor(i / CARDS_A_ROW) * CARD_HEIGHT;
    doc.font("Helvetica-Bold").fontSize(13).fillColor(INK).text(value, x, y, { width, lineBreak: false });
    doc
      .font("Helvetica")
      .fontSize(7.5)
      .fillColor(SOFT)
      .text(label, x, y + 17, { width, lineBreak: false });
  }
  doc.x = MARGIN;
  doc.y = top + Math.ceil(figures.length / CARDS_A_ROW) * CARD_HEIGHT;
}

/** A bar a day, blocked calls on top of accepted ones; the scale is said in words. */
function chart(doc: Doc, report: PeriodReport): void {
  room(doc, CHART_HEIGHT + 30);
  const { bars, most, days_each } = daysChartBars(report.per_day);
  const slot = widthOf(doc) / Math.max(1, bars.length);
  const bottom = doc.y + CHART_HEIGHT;
  for (const [i, { accepted, blocked }] of bars.entries()) {
    const x = MARGIN + i * slot + slot * 0.1;
    const width = Math.min(slot * 0.8, 40);
    const low = (accepted / most) * CHART_HEIGHT;
    const high = (blocked / most) * CHART_HEIGHT;
    if (accepted > 0) doc.rect(x, bottom - low, width, low).fill(ACCEPTED);
    if (blocked > 0) doc.rect(x, bottom - low - high, width, high).fill(BLOCKED);
  }
  doc
    .moveTo(MARGIN, bottom)
    .lineTo(doc.page.width - MARGIN, bottom)
    .lineWidth(0.7)
    .strokeColor("#d9dee6")
    .stroke();
  doc.x = MARGIN;
  doc.y = bottom + 4;
  const span = bars.length === 0 ? "no days" : `${bars[0]!.from} to ${bars.at(-1)!.to}`;
  const each = days_each === 1 ? "" : `, ${days_each} days a bar`;
  line(doc, `${span}${each}; blue: accepted, red: blocked; the highest bar is ${most}`, SOFT);
}

/** A time in a narrow column breaks between its day and its hour. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:)/;

async function table(doc: Doc, { title, note, columns, rows, none }: ReportSection): Promise<void> {
  heading(doc, title);
  if (columns === null) {
    for (const [name, value] of rows) pair(doc, words(name!), words(value!));
    return;
  }
  if (rows.length === 0) return line(doc, none, SOFT);
  const width = widthOf(doc) / (columns.length + 1);
  const at = (i: number) => MARGIN + (i === 0 ? 0 : (i + 1) * width);
  const head = () => row(columns, "Helvetica-Bold", SOFT);
  const row = (cells: readonly string[], font: string, color: string) => {
    const shown = cells.map((cell) => forPlainFont(clip(cell, MOST_CHARS)).replace(TIME, "$1 $2"));
    doc.font(font).fontSize(8);
    const widths = cells.map((_, i) => (i === 0 ? 2 * width : width) - 6);
    const height = Math.max(...shown.map((cell, i) => doc.heightOfString(cell, { width: widths[i]! })));
    const { page } = doc;
    room(doc, height + 3);
    if (doc.page !== page && cells !== columns) {
      head();
      doc.font(font).fontSize(8);
    }
    const { y } = doc;
    for (const [i, cell] of shown.entries()) doc.fillColor(color).text(cell, at(i), y, { width: widths[i]! });
    doc.x = MARGIN;
    doc.y = y + height + 3;
  };
  head();
  await each(rows, (cells) => row(cells.map(words), "Helvetica", INK));
  if (note !== undefined) line(doc, note, SOFT);
}

function words(cell: Cell): string {
  if ("number" in cell) return String(cell.number);
  return "name" in cell ? cell.name : cell.text;
}
