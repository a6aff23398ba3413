/** What the reports on paper share: an A4 page, headings, pairs, lines, and a footer on every page. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type PDFDocument from "pdfkit";
import { forPlainFont } from "./text.ts";

export type Doc = InstanceType<typeof PDFDocument>;

export const MARGIN = 50;
const FOOTER_ROOM = 30;
export const INK = "#1c2430";
export const SOFT = "#5b6675";
/** How many entries are set before others get a turn: setting text takes time. */
const TURN = 10;

interface Paper {
  title: string;
  author: string;
  made_ms: number;
  /** Stands at the left of every footer. */
  footer: string;
}

export async function paper(about: Paper, write: (doc: Doc) => Promise<void>): Promise<Uint8Array> {
  // Loaded with the first paper: it is large, and a server that prints nothing starts the sooner.
  const { default: Document } = await import("pdfkit");
  const doc = new Document({
    size: "A4",
    margins: { top: MARGIN, left: MARGIN, right: MARGIN, bottom: MARGIN + FOOTER_ROOM },
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

export function pair(doc: Doc, name: string, value: string): void {
  doc.font("Helvetica").fontSize(9.5);
  const width = doc.page.width - 2 * MARGIN - NAME_WIDTH;
  const shown = forPlainFont(value);
  const named = doc.heightOfString(name, { width: NAME_WIDTH });
  room(doc, Math.max(named, doc.heightOfString(shown, { width })));
  const { page, y } = doc;
  doc.fillColor(SOFT).text(name, MARGIN, y, { width: NAME_WIDTH });
  doc.fillColor(INK).text(shown, MARGIN + NAME_WIDTH, y, { width });
  // A name may take more lines than its value, which may go on over pages.
  if (doc.page === page) doc.y = Math.max(doc.y, y + named);
  doc.x = MARGIN;
  doc.moveDown(0.15);
}

export function heading(doc: Doc, text: string): void {
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

export function line(doc: Doc, text: string, color = INK, indent = 0): void {
  doc
    .font("Helvetica")
    .fontSize(9.5)
    .fillColor(color)
    .text(forPlainFont(text), MARGIN + indent, doc.y, { width: doc.page.width - 2 * MARGIN - indent });
}

/** Begins a new page when less than this is left on the current one. */
export function room(doc: Doc, height: number): void {
  if (doc.y + height > doc.page.height - doc.page.margins.bottom) doc.addPage();
}

export async function each<T>(items: readonly T[], set: (item: T) => void): Promise<void> {
  for (const [i, item] of items.entries()) {
    if (i > 0 && i % TURN === 0) await nextTurn();
    set(item);
  }
}

/** Ends the pages a few at a time: each is compressed, and the library would end all of them at once. */
async function flushInTurns(doc: Doc): Promise<void> {
  const inner = doc as unknown as { _pageBuffer: unknown[] };
  const pages = inner._pageBuffer;
  for (let i = 0; i < pages.length; i += TURN) {
    inner._pageBuffer = pages.slice(i, i + TURN);
    doc.flushPages();
    await nextTurn();
  }
}

async function footers(doc: Doc, footer: string): Promise<void> {
  const { start, count } = doc.bufferedPageRange();
  for (let i = start; i < start + count; i++) {
    if (i % TURN === 0) await nextTurn();
    doc.switchToPage(i);
    // Below the margin; without this pdfkit would begin another page.
    doc.page.margins.bottom = 0;
    const y = doc.page.height - MARGIN;
    const width = doc.page.width - 2 * MARGIN;
    doc.font("Helvetica").fontSize(7.5).fillColor(SOFT);
    doc.text(forPlainFont(footer), MARGIN, y, {
      width,
      lineBreak: false,
    });
    doc.text(`Page ${i - start + 1} of ${count}`, MARGIN, y, { width, align: "right", lineBreak: false });
  }
}
