/**
 * Times with their zone. The server writes them in UTC; the page's script puts them into the reader's zone, both on
 * hover.
 */
import { type Html, html, type Part } from "../html.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;

export const iso = (ms: number): string => new Date(ms).toISOString();
const exact = (ms: number): string => iso(ms).replace("T", " ").replace("Z", " UTC");

/** The time of day with its date. */
export function when(ms: number): Html {
  const shown = iso(ms).slice(0, 16).replace("T", " ");
  return html`<time datetime="${iso(ms)}" title="${exact(ms)}" data-at="clock">${shown} UTC</time>`;
}

const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z/g;

/** A text with the moments in it as the page writes moments. */
export function timed(text: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const found of text.matchAll(INSTANT)) {
    const ms = Date.parse(found[0]);
    if (Number.isNaN(ms)) continue;
    parts.push(text.slice(at, found.index), when(ms));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

/** How long ago, for what happened lately. */
export function ago(ms: number, now: number): Html {
  return html`<time datetime="${iso(ms)}" title="${exact(ms)}" data-at="ago">${agoText(ms, now)}</time>`;
}

function agoText(ms: number, now: number): string {
  const past = now - ms;
  if (past < -MINUTE) return `in ${span(-past)}`;
  return past < MINUTE ? "just now" : `${span(past)} ago`;
}

/** A length of time in one unit. */
export function span(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.round(ms / 1_000))} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.round(ms / HOUR)} h`;
  return `${Math.round(ms / DAY)} days`;
}

/** How long something took. */
export function took(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : span(ms);
}
