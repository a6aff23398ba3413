/** Line-by-line difference of two texts. */
import type { DiffLine } from "../../kernel/text/diff.ts";
import { type HtmlFragment, safeHtml } from "../html.ts";

const SIGNS: Record<DiffLine["kind"], string> = { same: "  ", added: "+ ", removed: "- ", gap: "" };

export function diffBlock(label: string, lines: readonly DiffLine[]): HtmlFragment {
  return safeHtml`<pre class="diff" tabindex="0" aria-label="${label}">${lines.map(diffLine)}</pre>`;
}

function diffLine({ kind, text }: DiffLine): HtmlFragment {
  return safeHtml`<span class="line ${kind}">${kind === "gap" ? `⋯ ${text}`.trim() : `${SIGNS[kind]}${text}`}</span>
`;
}
