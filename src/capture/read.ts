/** Reading captured calls page by page, and deleting them. What has expired is never read. */
import type { Json } from "../kernel/json.ts";
import type { DocRow, ListQuery, Store } from "../port/store.ts";
import type { PastCall } from "../sandbox/past-call.ts";
import { weightOf } from "./queue.ts";

interface CaptureQuery {
  run_id?: string | undefined;
  tool?: string | undefined;
  since_ms?: number | undefined;
  /** What is captured later is left out, so that a reading ends. */
  until_ms?: number | undefined;
}

const PAGE = { first: 8, most: 200, weight: 512 * 1_024 };
const PURGE_PAGE = 100;

/** Unexpired calls in the order in which they were decided, in pages small enough to pass on quickly. */
export async function* capturedPages(
  store: Store,
  query: CaptureQuery,
  now_ms: number,
): AsyncGenerator<PastCall[]> {
  const { run_id: owner, tool: tag, since_ms: from, until_ms: to } = query;
  let limit = PAGE.first;
  for await (const rows of rowPages(store, { owner, tag, from, to }, () => limit)) {
    const calls = rows.map(({ doc }) => doc as PastCall).filter((call) => call.expires_ms > now_ms);
    limit = nextLimit(limit, rows);
    if (calls.length > 0) yield calls;
  }
}

/** So many rows as made up half a megabyte on average last time. */
function nextLimit(limit: number, rows: readonly DocRow<"captures">[]): number {
  const weight = rows.reduce((sum, { doc }) => sum + weightOf(doc as unknown as Json), 0);
  const fitting = Math.floor((PAGE.weight * rows.length) / Math.max(1, weight));
  return Math.max(1, Math.min(PAGE.most, 2 * limit, fitting));
}

/** Deletes everything of one run, or else whatever has expired; answers how many calls that were. */
export async function purgeCaptures(
  store: Store,
  which: { run_id: string } | { expired_at_ms: number },
): Promise<number> {
  const query = "run_id" in which ? { owner: which.run_id } : {};
  const goes = ({ doc }: DocRow<"captures">) => "run_id" in which || doc.expires_ms <= which.expired_at_ms;
  let removed = 0;
  for await (const rows of rowPages(store, query, () => PURGE_PAGE)) {
    const keys = rows.filter(goes).map(({ key }) => key);
    if (keys.length === 0) continue;
    await store.transact({
      run(tx) {
        for (const key of keys) tx.delete("captures", key);
      },
    });
    removed += keys.length;
  }
  if (removed > 0) await store.scrub();
  return removed;
}

async function* rowPages(
  store: Store,
  query: Omit<ListQuery, "limit" | "after">,
  limitNow: () => number,
): AsyncGenerator<DocRow<"captures">[]> {
  let after: ListQuery["after"];
  for (;;) {
    const limit = limitNow();
    const rows = await store.list("captures", { ...query, after, limit });
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    after = { sort: last.sort, key: last.key };
  }
}
