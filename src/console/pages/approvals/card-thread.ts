/** Draws the cards of a page: small ones here, and large ones in a thread, which hands back finished HTML. */
import { drawInThread, valuesThread } from "../../../operations/values/threads.ts";
import type { EmbeddedHtml, HtmlFragment } from "../../html.ts";
import { type DrawnPage, drawingPage, type PageDrawing } from "./draw-cards.ts";

const cardPageThread = valuesThread("the thread for pages", "console/pages/approvals/worker");

export async function drawPage(
  drawing: PageDrawing,
  embedded: EmbeddedHtml,
): Promise<DrawnPage<HtmlFragment>> {
  const drawn = await drawInThread<DrawnPage<HtmlFragment | Uint8Array>>(
    drawing.cards,
    cardPageThread,
    drawing,
    () => drawingPage(drawing),
  );
  const { html } = drawn;
  return { ...drawn, html: html instanceof Uint8Array ? embedded.embed(html) : html };
}
