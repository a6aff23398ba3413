/** Ledger records as people read them: what happened, by whom, and the hash that the next one builds on. */
import { waitsForApproval } from "../../engine/decide/approval-stage.ts";
import { canonical } from "../../kernel/canonical.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { EVENTS, isLedgerEvent, type LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { hashText, runLink } from "./ids.ts";
import { mark, type Tone } from "./marks.ts";
import { timed, when } from "./time.ts";

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

/** In words; the name that filters and exports know is on hover. */
function eventMark({ event, detail }: LedgerRecord): Html {
  if (event === "blocked" && waitsForApproval(detail)) return mark("warn", "waits for approval", event);
  return isLedgerEvent(event) ? mark(EVENT_TONES[event], EVENTS[event], event) : mark("quiet", event);
}

/** How records name a request and a plan. */
const NAMED = /(request )?((?:apr|pln)_[0-9a-f-]{36})/g;
const PAGE_OF: Record<string, string> = { apr: "/console/approvals", pln: "/console/plans" };

/** A record's text with its requests and plans as links to them, instead of their numbers. */
export function linked(text: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const found of text.matchAll(NAMED)) {
    const id = found[2]!;
    const kind = id.slice(0, 3);
    parts.push(
      ...timed(text.slice(at, found.index)),
      html`<a href="${PAGE_OF[kind]!}/${id}" title="${id}">${kind === "pln" ? "this plan" : "this request"}</a>`,
    );
    at = found.index + found[0].length;
  }
  return [...parts, ...timed(text.slice(at))];
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

export function trailOf(lines: readonly string[]): Trailed[] {
  return lines.map((line) => checked(JSON.parse(line) as LedgerRecord));
}

/** Records one below the other, joined where one's hash is the next one's foundation. */
export function trail(items: readonly Trailed[], options: { runs: boolean }): Html {
  const rows = items.map(({ record, sound }, i) => {
    const below = items[i + 1]?.record;
    const joins = below !== undefined && (below.prev === record.hash || below.hash === record.prev);
    return html`<li class="record${joins ? " linked" : ""}">
<div class="record-head"><span class="seq">#${record.seq}</span>${eventMark(record)}${
      record.tool === undefined ? null : html`<code>${record.tool}</code>`
    }${record.step === undefined ? null : html`<span class="soft">step ${record.step}</span>`}<span class="record-by">${record.actor}</span>${when(record.ts_ms)}</div>
${record.detail === undefined ? null : html`<p class="record-detail">${linked(record.detail)}</p>`}
<p class="record-foot">${hashText(record.hash)}${sound ? null : mark("bad", "hash does not match its record")}${
      options.runs && record.run_id !== undefined ? runLink(record.run_id) : nothing
    }</p></li>`;
  });
  return html`<ol class="trail">${rows}</ol>`;
}
