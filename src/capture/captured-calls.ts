/** Reads captured calls page by page, and deletes them. Expired calls are never returned. */
import { isExpired } from "../govern/expiry.ts";
import type { DocRow, ListQuery, StateStore } from "../govern/port/store.ts";
import { asJson } from "../kernel/json/json.ts";
import type { HistoricCall } from "../simulate/recorded-call.ts";
import { weightOf } from "./queue.ts";

interface CaptureQuery {
  run_id?: string | undefined;
  tool?: string | undefined;
  since_ms?: number | undefined;
  /** Excludes calls captured later, so that the reading ends. */
  until_ms?: number | undefined;
}

const PAGE = { first: 8, most: 200, weight: 512 * 1_024 };
const PURGE_PAGE = 100;

/** Yields unexpired calls in the order of their decisions, in small pages. */
export async function* capturedPages(
  store: StateStore,
  query: CaptureQuery,
  now_ms: number,
): AsyncGenerator<HistoricCall[]> {
  const { run_id: owner, tool: tag, since_ms: from, until_ms: to } = query;
  let limit = PAGE.first;
  for await (const rows of rowPages(store, { owner, tag, from, to }, () => limit)) {
    const calls = rows.map(({ doc }) => doc as HistoricCall).filter((call) => !isExpired(call, now_ms));
    limit = nextLimit(limit, rows);
    if (calls.length > 0) yield calls;
  }
}

/** Number of rows that would make about half a megabyte, by the average of the last page. */
function nextLimit(limit: number, rows: readonly DocRow<"captures">[]): number {
  const weight = rows.reduce((sum, { doc }) => sum + weightOf(asJson(doc)), 0);
  const fitting = Math.floor((PAGE.weight * rows.length) / Math.max(1, weight));
  return Math.max(1, Math.min(PAGE.most, 2 * limit, fitting));
}

/** Deletes all calls of one run, or all expired ones, and returns their number. */
export async function purgeCaptures(
  store: StateStore,
  which: { run_id: string } | { expired_at_ms: number },
): Promise<number> {
  const query = "run_id" in which ? { owner: which.run_id } : {};
  const goes = ({ doc }: DocRow<"captures">) => "run_id" in which || isExpired(doc, which.expired_at_ms);
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
  store: StateStore,
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
