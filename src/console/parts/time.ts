/** Times. The server renders UTC; the page's script converts to the reader's time zone. Both are in the tooltip. */
import { type HtmlFragment, safeHtml, type TemplateValue } from "../html.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;

export const isoTimestamp = (ms: number): string => new Date(ms).toISOString();
const exact = (ms: number): string => isoTimestamp(ms).replace("T", " ").replace("Z", " UTC");

/** Date and time of day. */
export function formatTime(ms: number): HtmlFragment {
  const shown = isoTimestamp(ms).slice(0, 16).replace("T", " ");
  return safeHtml`<time datetime="${isoTimestamp(ms)}" title="${exact(ms)}" data-at="clock">${shown} UTC</time>`;
}

/** Hour of a day, such as `14:00`. */
export function formatHour(ms: number): HtmlFragment {
  return safeHtml`<time datetime="${isoTimestamp(ms)}" title="${exact(ms)}" data-at="hour">${hourText(ms)}</time>`;
}

/** Time of day in UTC, to the minute. */
export const hourText = (ms: number): string => isoTimestamp(ms).slice(11, 16);

const DAY_FORMAT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
/** Day in UTC, such as `9 Jun`. */
export const dayText = (ms: number): string => DAY_FORMAT.format(ms);

const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z/g;

/** Formats the timestamps within a text. */
export function formatTimesIn(text: string): TemplateValue[] {
  const parts: TemplateValue[] = [];
  let at = 0;
  for (const found of text.matchAll(INSTANT)) {
    const ms = Date.parse(found[0]);
    if (Number.isNaN(ms)) continue;
    parts.push(text.slice(at, found.index), formatTime(ms));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

/** Time relative to now. */
export function formatAgo(ms: number, now: number): HtmlFragment {
  return safeHtml`<time datetime="${isoTimestamp(ms)}" title="${exact(ms)}" data-at="ago">${agoText(ms, now)}</time>`;
}

function agoText(ms: number, now: number): string {
  const past = now - ms;
  if (past < -MINUTE) return `in ${formatSpan(-past)}`;
  return past < MINUTE ? "just now" : `${formatSpan(past)} ago`;
}

/** Duration in its largest unit. */
export function formatSpan(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.round(ms / 1_000))} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.round(ms / HOUR)} h`;
  return `${Math.round(ms / DAY)} days`;
}

/** Elapsed time of an operation. */
export function formatElapsed(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : formatSpan(ms);
}
