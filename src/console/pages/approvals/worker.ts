/** Thread that draws the cards of pages. It has no store; the host sends it the values as JSON. */
import { serveThread } from "../../../child-process/thread-pool.ts";
import { type DrawnPage, drawForPage } from "./draw-cards.ts";

serveThread(() => ({
  work: drawForPage,
  /** The HTML leaves the thread without a copy. */
  transfer: ({ html }: DrawnPage<Uint8Array>) => [html.buffer as ArrayBuffer],
}));
