/** Ledger records as people read them: what happened, by whom, and the hash that the next one builds on. */
import { canonical } from "../../kernel/canonical.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { EVENTS, isLedgerEvent, type LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type Html, html, nothing } from "../html.ts";
import { hashText, runLink } from "./ids.ts";
import { mark, type Tone } from "./marks.ts";
import { when } from "./time.ts";

const EVENT_TONES: Record<LedgerEvent, Tone> = {
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
};

function eventMark(event: string): Html {
  return isLedgerEvent(event) ? mark(EVENT_TONES[event], event, EVENTS[event]) : mark("quiet", event);
}

export interface Trailed {
  record: LedgerRecord;
  /** Whether the hash that stands on the record is the hash of the record. */
  sound: boolean;
}

export function checked(record: LedgerRecord): Trailed {
  const { hash, ...rest } = record;
  return { record, sound: sha256Hex(canonical(rest as unknown as Json)) === hash };
}

export function readTrail(lines: readonly string[]): Trailed[] {
  return lines.map((line) => checked(JSON.parse(line) as LedgerRecord));
}

/** Records one below the other, joined where one's hash is the next one's foundation. */
export function trail(items: readonly Trailed[], options: { runs: boolean }): Html {
  const rows = items.map(({ record, sound }, i) => {
    const below = items[i + 1]?.record;
    const linked = below !== undefined && (below.prev === record.hash || below.hash === record.prev);
    return html`<li class="record${linked ? " linked" : ""}">
<div class="record-head"><span class="seq">#${record.seq}</span>${eventMark(record.event)}${
      record.tool === undefined ? null : html`<code>${record.tool}</code>`
    }${record.step === undefined ? null : html`<span class="soft">step ${record.step}</span>`}<span class="record-by">${record.actor}</span>${when(record.ts_ms)}</div>
${record.detail === undefined ? null : html`<p class="record-detail">${record.detail}</p>`}
<p class="record-foot">${hashText(record.hash)}${sound ? null : mark("bad", "hash does not match its record")}${
      options.runs && record.run_id !== undefined ? runLink(record.run_id) : nothing
    }</p></li>`;
  });
  return html`<ol class="trail">${rows}</ol>`;
}
