/** Layout shared by the PDF reports: A4 pages, headings, name-value pairs, lines, and a footer on every page. */
import { setImmediate as nextTurn } from "node:timers/promises";
import PDFDocument from "pdfkit";
import { forPlainFont } from "./external-text.ts";

export type PdfDoc = InstanceType<typeof PDFDocument>;

export const PAGE_MARGIN = 50;
const FOOTER_ROOM = 30;
export const TEXT_COLOR = "#1c2430";
export const MUTED_COLOR = "#5b6675";
/** Entries laid out before other work gets a turn, because text layout is slow. */
const TURN = 10;

interface Paper {
  title: string;
  author: string;
  made_ms: number;
  /** Left part of every footer. */
  footer: string;
}

export async function renderPdf(about: Paper, write: (doc: PdfDoc) => Promise<void>): Promise<Uint8Array> {
  const doc = new PDFDocument({
    size: "A4",
    margins: { top: PAGE_MARGIN, left: PAGE_MARGIN, right: PAGE_MARGIN, bottom: PAGE_MARGIN + FOOTER_ROOM },
    bufferPages: true,
    lang: "en",
    displayTitle: true,
    info: {
      Title: forPlainFont(about.title),
      Author: about.author,
      CreationDate: new Date(about.made_ms),
    },
  });
  const chunks: Buffer[] = [];
  doc.on("data", (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise<void>((resolve, reject) => doc.on("end", resolve).on("error", reject));
  await write(doc);
  await footers(doc, about.footer);
  await flushInTurns(doc);
  doc.end();
  await ended;
  return Buffer.concat(chunks);
}

const NAME_WIDTH = 104;

export function drawPair(doc: PdfDoc, name: string, value: string): void {
  doc.font("Helvetica").fontSize(9.5);
  const width = doc.page.width - 2 * PAGE_MARGIN - NAME_WIDTH;
  const shown = forPlainFont(value);
  const named = doc.heightOfString(name, { width: NAME_WIDTH });
  ensurePageSpace(doc, Math.max(named, doc.heightOfString(shown, { width })));
  const { page, y } = doc;
  doc.fillColor(MUTED_COLOR).text(name, PAGE_MARGIN, y, { width: NAME_WIDTH });
  doc.fillColor(TEXT_COLOR).text(shown, PAGE_MARGIN + NAME_WIDTH, y, { width });
  // A name may take more lines than its value. A value may continue on further pages.
  if (doc.page === page) doc.y = Math.max(doc.y, y + named);
  doc.x = PAGE_MARGIN;
  doc.moveDown(0.15);
}

export function drawHeading(doc: PdfDoc, text: string): void {
  doc.moveDown(0.9);
  ensurePageSpace(doc, 60);
  doc.font("Helvetica-Bold").fontSize(12).fillColor(TEXT_COLOR).text(text, PAGE_MARGIN);
  const { y } = doc;
  doc
    .moveTo(PAGE_MARGIN, y + 2)
    .lineTo(doc.page.width - PAGE_MARGIN, y + 2)
    .lineWidth(0.7)
    .strokeColor("#d9dee6")
    .stroke();
  doc.moveDown(0.5);
}

export function drawLine(doc: PdfDoc, text: string, color = TEXT_COLOR, indent = 0): void {
  doc
    .font("Helvetica")
    .fontSize(9.5)
    .fillColor(color)
    .text(forPlainFont(text), PAGE_MARGIN + indent, doc.y, {
      width: doc.page.width - 2 * PAGE_MARGIN - indent,
    });
}

/** Starts a new page if less than this height is left. */
export function ensurePageSpace(doc: PdfDoc, height: number): void {
  if (doc.y + height > doc.page.height - doc.page.margins.bottom) doc.addPage();
}

export async function drawEach<T>(items: readonly T[], set: (item: T) => void): Promise<void> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % TURN === 0) await nextTurn();
    set(item);
  }
}

/** Ends the pages a few at a time. Each is compressed, and the library would compress all of them at once. */
async function flushInTurns(doc: PdfDoc): Promise<void> {
  // pdfkit keeps its buffered pages in a private member.
  const inner = doc as unknown as { _pageBuffer: unknown[] };
  const pages = inner._pageBuffer;
  for (let i = 0; i < pages.length; i += TURN) {
    inner._pageBuffer = pages.slice(i, i + TURN);
    doc.flushPages();
    await nextTurn();
  }
}

async function footers(doc: PdfDoc, footer: string): Promise<void> {
  const { start, count } = doc.bufferedPageRange();
  for (let i = start; i < start + count; i++) {
    if (i % TURN === 0) await nextTurn();
    doc.switchToPage(i);
    // Without this, pdfkit would start a new page for text below the margin.
    doc.page.margins.bottom = 0;
    const y = doc.page.height - PAGE_MARGIN;
    const width = doc.page.width - 2 * PAGE_MARGIN;
    doc.font("Helvetica").fontSize(7.5).fillColor(MUTED_COLOR);
    doc.text(forPlainFont(footer), PAGE_MARGIN, y, {
      width,
      lineBreak: false,
    });
    doc.text(`Page ${i - start + 1} of ${count}`, PAGE_MARGIN, y, {
      width,
      align: "right",
      lineBreak: false,
    });
  }
}
