/** The timeline of an incident: the records of its runs, its halts, and what people wrote. It never holds a value. */
import type { IncidentEntryDoc } from "../../govern/incidents/incident.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { isLedgerEvent, LEDGER_EVENTS } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { IncidentContext } from "./tasks.ts";

/** One line. `seq` is the ledger position, or null for a cause and for what a person wrote. */
export interface TimelineEntry {
  at_ms: number;
  event: string;
  by: string;
  text: string;
  run_id: string | null;
  step: number | null;
  tool: string | null;
  rule: string | null;
  card_hash: string | null;
  seq: number | null;
}

/** The newest records of one run, and of the whole service, that a timeline reads. */
const RECORDS_OF_ONE = 300;
const SERVICE_EVENTS = ["halted", "resumed", "contained", "key_changed", "key_deleted"];
/** A halt is recorded in the same unit as its cause, but an operator's clock may differ a little. */
const LEAD_MS = 60_000;

/** Returns the newest lines, oldest first, and whether older ones are left out. */
export async function incidentTimeline(
  store: StateStore,
  context: IncidentContext,
  entries: readonly IncidentEntryDoc[],
): Promise<{ lines: TimelineEntry[]; more: boolean }> {
  const { incident, causes } = context;
  const lines: TimelineEntry[] = [];
  let more = false;
  for (const run_id of incident.runs) {
    const until_ms = incident.closed_ms ?? undefined;
    const found = await store.records({ run_id, until_ms, order: "desc", limit: RECORDS_OF_ONE });
    more ||= found.length === RECORDS_OF_ONE;
    for (const line of found) lines.push(await recordLine(store, JSON.parse(line) as LedgerRecord));
  }
  for (const record of await serviceRecords(store, context)) lines.push(await recordLine(store, record));
  for (const { kind, at_ms, text, run_id, step } of causes)
    if (kind !== "halt" && kind !== "containment")
      lines.push({ ...blank, at_ms, event: kind, by: "engine", text, run_id, step });
  for (const { kind, at_ms, by, text } of entries) lines.push({ ...blank, at_ms, event: kind, by, text });
  const place = ({ seq }: TimelineEntry) => seq ?? Number.POSITIVE_INFINITY;
  lines.sort((a, b) => a.at_ms - b.at_ms || place(a) - place(b));
  const newest = lines.slice(-SERVICE_LIMITS.incident_timeline);
  return { lines: newest, more: more || newest.length < lines.length };
}

const blank = { run_id: null, step: null, tool: null, rule: null, card_hash: null, seq: null };

/** Records of the service that name one of the incident's halts, containments or keys. */
async function serviceRecords(
  store: StateStore,
  { incident, causes }: IncidentContext,
): Promise<LedgerRecord[]> {
  const names = [`key ${incident.actor}:`, `key ${incident.actor},`];
  for (const { kind, ref } of causes) {
    if (kind === "halt" || kind === "containment") names.push(`${ref}:`);
    if (kind !== "containment") continue;
    const halt = (await store.get("containments", ref))?.halt_id;
    if (halt !== undefined) names.push(`${halt}:`);
  }
  const lines = await store.records({
    event: SERVICE_EVENTS,
    since_ms: incident.opened_ms - LEAD_MS,
    until_ms: incident.closed_ms ?? undefined,
    order: "desc",
    limit: SERVICE_LIMITS.incident_timeline,
  });
  const records = lines.map((line) => JSON.parse(line) as LedgerRecord);
  return records.filter(({ detail }) => names.some((name) => detail?.startsWith(name)));
}

const REQUEST = /\b(?:request )?(apr_[0-9a-f-]{36})/;
const CARD = /; card (\S+)$/;
const RULE = /\brule (\S+) (?:allows|requires|denies)\b/;

async function recordLine(store: StateStore, record: LedgerRecord): Promise<TimelineEntry> {
  const { ts_ms, event, actor, detail = "", run_id = null, step = null, tool = null, seq } = record;
  const request = REQUEST.exec(detail)?.[1];
  const asked = request === undefined ? undefined : await store.get("approvals", request);
  return {
    at_ms: ts_ms,
    event,
    by: actor,
    text: detail === "" ? (isLedgerEvent(event) ? LEDGER_EVENTS[event] : event) : detail,
    run_id,
    step,
    tool,
    rule: asked?.rule ?? RULE.exec(detail)?.[1] ?? null,
    card_hash: CARD.exec(detail)?.[1] ?? null,
    seq,
  };
}

export async function incidentEntries(store: StateStore, id: string): Promise<IncidentEntryDoc[]> {
  const entries: IncidentEntryDoc[] = [];
  for await (const { doc } of allRows(store, "incident_entries", { owner: id })) entries.push(doc);
  return entries;
}
