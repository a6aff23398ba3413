/** A difference of two texts, line by line. */
import type { DiffLine } from "../../kernel/diff.ts";
import { type Html, html } from "../html.ts";

const SIGNS: Record<DiffLine["kind"], string> = { same: "  ", added: "+ ", removed: "- ", gap: "" };

export function diffBlock(label: string, lines: readonly DiffLine[]): Html {
  return html`<pre class="diff" tabindex="0" aria-label="${label}">${lines.map(diffLine)}</pre>`;
}

function diffLine({ kind, text }: DiffLine): Html {
  return html`<span class="line ${kind}">${kind === "gap" ? `⋯ ${text}`.trim() : `${SIGNS[kind]}${text}`}</span>
`;
}
