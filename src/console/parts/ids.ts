/** Ids and hashes: shortened, with the full text on hover and in the copy button, and a pattern to compare by eye. */
import { type HtmlFragment, safeHtml } from "../html.ts";

/** Names up to this length are kept on one line. */
const SHORT = 24;

export function copyButton(text: string, what: string): HtmlFragment {
  return safeHtml`<button type="button" class="copy js-only" data-copy="${text}" aria-label="Copy ${what}" title="Copy ${what}"></button>`;
}

/** Full id with a copy button. */
export function idText(id: string, what = "id"): HtmlFragment {
  return safeHtml`<span class="id"><code>${id}</code>${copyButton(id, what)}</span>`;
}

export function runLink(run_id: string): HtmlFragment {
  return safeHtml`<a class="id${run_id.length <= SHORT ? " short" : ""}" href="${runPath(run_id)}"><code>${run_id}</code></a>`;
}

/** Name that does not break at hyphens, unless it is long. */
export function nameText(name: string): HtmlFragment {
  return name.length <= SHORT ? safeHtml`<span class="short">${name}</span>` : safeHtml`${name}`;
}

export const runPath = (run_id: string): string => `/console/runs/${encodeURIComponent(run_id)}`;

/** First digits of a hash with its ribbon. */
export function hashText(hash: string, what = "hash", digits = 12): HtmlFragment {
  const hex = hash.replace(/^sha256:/, "");
  return safeHtml`<span class="hash">${ribbon(hex)}<code title="${hash}">${hex.slice(0, digits)}</code>${copyButton(hash, what)}</span>`;
}

const STRIPES = 16;

/**
 * Draws a hash as stripes. Hashes that differ in their first 32 digits look different. Each byte sets the height and
 * shade of one stripe.
 */
function ribbon(hash: string): HtmlFragment {
  const bytes = Array.from(
    { length: STRIPES },
    (_, i) => Number.parseInt(hash.slice(2 * i, 2 * i + 2), 16) || 0,
  );
  const stripes = bytes.map((byte, i) => {
    const height = 4 + (byte >> 5) * 1.7;
    return safeHtml`<rect class="r${byte & 7}" x="${i * 3}" y="${(16 - height).toFixed(1)}" width="2.2" height="${height.toFixed(1)}"/>`;
  });
  return safeHtml`<svg class="ribbon" viewBox="0 0 ${STRIPES * 3} 16" width="${STRIPES * 3}" height="16" aria-hidden="true">${stripes}</svg>`;
}

export function toolLink(tool: string): HtmlFragment {
  return safeHtml`<a href="/console/tools/${encodeURIComponent(tool)}"><code>${tool}</code></a>`;
}
