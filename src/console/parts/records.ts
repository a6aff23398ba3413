/** Ledger records in readable form: event, actor, and the hash that links to the next record. */

import { sha256Hex } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { asJson } from "../../kernel/json/json.ts";
import { isLedgerEvent, type LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { eventWords, WAITING_WORDS } from "../../operations/event-words.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../html.ts";
import { hashText, runLink } from "./ids.ts";
import { type MarkTone, markLabel } from "./marks.ts";
import { formatTime, formatTimesIn } from "./time.ts";

const EVENT_TONES: Record<LedgerEvent, MarkTone> = {
  blocked: "bad",
  would_block: "warn",
  approved: "good",
  denied: "bad",
  intended: "info",
  succeeded: "good",
  failed: "quiet",
  uncertain: "warn",
  compensating: "info",
  compensated: "good",
  compensation_failed: "bad",
  verified: "good",
  verification_failed: "bad",
  unverified: "warn",
  purged: "quiet",
  approval_expired: "quiet",
  approval_escalated: "warn",
  delegated: "info",
  delegation_revoked: "quiet",
  granted: "info",
  grant_revoked: "quiet",
  plan_proposed: "info",
  plan_approved: "good",
  plan_denied: "bad",
  halted: "bad",
  resumed: "good",
  key_created: "info",
  key_changed: "info",
  key_deleted: "warn",
  passkey_added: "info",
  passkey_revoked: "warn",
  upstream_connected: "info",
  upstream_revoked: "warn",
  manifest_published: "info",
  manifest_approved: "good",
  manifest_deprecated: "quiet",
  policy_activated: "info",
  reloaded: "quiet",
  witnessed: "good",
  probed: "info",
  contained: "bad",
  drill_passed: "good",
  drill_failed: "bad",
  reconciled: "info",
  effect_missing: "bad",
};

/** Readable event name. The tooltip shows the name that filters and exports use. */
function eventMark({ event, detail }: LedgerRecord): HtmlFragment {
  const words = eventWords(event, detail);
  if (words === WAITING_WORDS) return markLabel("warn", words, event);
  return markLabel(isLedgerEvent(event) ? EVENT_TONES[event] : "quiet", words, event);
}

/** Matches the ids of requests and plans in record texts. */
const NAMED = /(request )?((?:apr|pln)_[0-9a-f-]{36})/g;
const PAGE_OF: Record<string, string> = { apr: "/console/approvals", pln: "/console/plans" };

/** Replaces ids of requests and plans in a record's text with links. */
export function linkIds(text: string): TemplateValue[] {
  const parts: TemplateValue[] = [];
  let at = 0;
  for (const found of text.matchAll(NAMED)) {
    const id = found[2]!;
    const kind = id.slice(0, 3);
    parts.push(
      ...formatTimesIn(text.slice(at, found.index)),
      safeHtml`<a href="${PAGE_OF[kind]!}/${id}" title="${id}">${kind === "pln" ? "this plan" : "this request"}</a>`,
    );
    at = found.index + found[0].length;
  }
  return [...parts, ...formatTimesIn(text.slice(at))];
}

export interface CheckedRecord {
  record: LedgerRecord;
  /** Whether the record's content matches its hash. */
  sound: boolean;
}

export function checkRecordHash(record: LedgerRecord): CheckedRecord {
  const { hash, ...rest } = record;
  return { record, sound: sha256Hex(toCanonicalJson(asJson(rest))) === hash };
}

export function checkRecordLines(lines: readonly string[]): CheckedRecord[] {
  return lines.map((line) => checkRecordHash(JSON.parse(line) as LedgerRecord));
}

/** List of records. Neighbours are joined if one's hash is the other's `prev`. */
export function trailList(items: readonly CheckedRecord[], options: { runs: boolean }): HtmlFragment {
  const rows = items.map(({ record, sound }, i) => {
    const below = items[i + 1]?.record;
    const joins = below !== undefined && (below.prev === record.hash || below.hash === record.prev);
    return safeHtml`<li class="record${joins ? " linked" : ""}">
<div class="record-head"><span class="seq">#${record.seq}</span>${eventMark(record)}${
      record.tool === undefined ? null : safeHtml`<code>${record.tool}</code>`
    }${record.step === undefined ? null : safeHtml`<span class="soft">step ${record.step}</span>`}<span class="record-by">${record.actor}</span>${formatTime(record.ts_ms)}</div>
${record.detail === undefined ? null : safeHtml`<p class="record-detail">${linkIds(record.detail)}</p>`}
<p class="record-foot">${hashText(record.hash)}${sound ? null : markLabel("bad", "hash does not match its record")}${
      options.runs && record.run_id !== undefined ? runLink(record.run_id) : emptyHtml
    }</p></li>`;
  });
  return safeHtml`<ol class="trail">${rows}</ol>`;
}
