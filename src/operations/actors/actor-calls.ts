/** Counts the calls of one agent by hour and decision, from its own records: the newest first, up to a fixed number. */
import { waitsForApproval } from "../../govern/decide/approval-stage.ts";
import type { StateStore } from "../../govern/port/store.ts";
import type { LedgerRecord } from "../../ledger/record.ts";

const ACTOR_COUNTS = ["allowed", "would_block", "waiting", "refused", "failed"] as const;
type ActorCounts = Record<(typeof ACTOR_COUNTS)[number], number>;

export interface ActorHour extends ActorCounts {
  from_ms: number;
}

const HOUR_MS = 3_600_000;
const HOURS = 24;
const PAGE = 2_000;
const MAX_RECORDS = 20_000;
const EVENTS = ["intended", "would_block", "blocked", "failed"];

/** Returns the last 24 hours, oldest first, and whether older calls of them are not counted. */
export async function countActorCalls(
  store: StateStore,
  actor: string,
  now: number,
): Promise<{ hours: ActorHour[]; more: boolean }> {
  const first = Math.floor(now / HOUR_MS) - HOURS + 1;
  const hours = Array.from({ length: HOURS }, (_, i) => ({ from_ms: (first + i) * HOUR_MS, ...noCalls() }));
  const since_ms = first * HOUR_MS;
  let to: number | undefined;
  for (let read = 0; read < MAX_RECORDS; ) {
    const query = { actor, event: EVENTS, since_ms, to, order: "desc", limit: PAGE } as const;
    const lines = await store.records(query);
    const records = lines.map((line) => JSON.parse(line) as LedgerRecord);
    for (const record of records) {
      const hour = hours[Math.floor(record.ts_ms / HOUR_MS) - first];
      if (hour !== undefined) countRecord(hour, record);
    }
    if (records.length < PAGE) return { hours, more: false };
    read += records.length;
    to = records.at(-1)!.seq - 1;
    if (to < 0) return { hours, more: false };
  }
  return { hours, more: true };
}

function countRecord(hour: ActorCounts, { event, detail }: LedgerRecord): void {
  if (event === "blocked") hour[waitsForApproval(detail) ? "waiting" : "refused"]++;
  else if (event === "failed") hour.failed++;
  else if (event === "would_block") {
    // The ledger holds such a call twice: it would be refused, and it was made.
    hour.would_block++;
    hour.allowed--;
  } else hour.allowed++;
}

const noCalls = (): ActorCounts => ({ allowed: 0, would_block: 0, waiting: 0, refused: 0, failed: 0 });
