/** Ids and hashes: short enough to read, whole on hover and under the copy button, and drawn for comparing by eye. */
import { type Html, html } from "../html.ts";

/** As many characters are kept on one line. */
const SHORT = 24;

export function copyButton(text: string, what: string): Html {
  return html`<button type="button" class="copy js-only" data-copy="${text}" aria-label="Copy ${what}" title="Copy ${what}"></button>`;
}

/** An id in full, with a copy button. */
export function idText(id: string, what = "id"): Html {
  return html`<span class="id"><code>${id}</code>${copyButton(id, what)}</span>`;
}

export function runLink(run_id: string): Html {
  return html`<a class="id${run_id.length <= SHORT ? " short" : ""}" href="${runPath(run_id)}"><code>${run_id}</code></a>`;
}

/** A name that is not broken at its hyphens; a long one has to be. */
export function nameText(name: string): Html {
  return name.length <= SHORT ? html`<span class="short">${name}</span>` : html`${name}`;
}

export const runPath = (run_id: string): string => `/console/runs/${encodeURIComponent(run_id)}`;

/** The first digits of a hash, with its ribbon. */
export function hashText(hash: string, what = "hash", digits = 12): Html {
  const hex = hash.replace(/^sha256:/, "");
  return html`<span class="hash">${ribbon(hex)}<code title="${hash}">${hex.slice(0, digits)}</code>${copyButton(hash, what)}</span>`;
}

const STRIPES = 16;

/**
 * A hash as stripes: two that differ anywhere in their first 32 digits look different at a glance. The height
 * and the shade of each stripe come from one byte.
 */
function ribbon(hash: string): Html {
  const bytes = Array.from(
    { length: STRIPES },
    (_, i) => Number.parseInt(hash.slice(2 * i, 2 * i + 2), 16) || 0,
  );
  const stripes = bytes.map((byte, i) => {
    const height = 4 + (byte >> 5) * 1.7;
    return html`<rect class="r${byte & 7}" x="${i * 3}" y="${(16 - height).toFixed(1)}" width="2.2" height="${height.toFixed(1)}"/>`;
  });
  return html`<svg class="ribbon" viewBox="0 0 ${STRIPES * 3} 16" width="${STRIPES * 3}" height="16" aria-hidden="true">${stripes}</svg>`;
}

export function toolLink(tool: string): Html {
  return html`<a href="/console/tools/${encodeURIComponent(tool)}"><code>${tool}</code></a>`;
}
