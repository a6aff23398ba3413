/** Counts the ledger by the hour: every record once, also with new records during the count. */
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../store/memory/store.ts";
import { COUNTED_DECISIONS, HourCounts } from "./hour-counts.ts";

const HOUR = 3_600_000;
const NOW = 1_000 * HOUR + 30 * 60_000;

async function append(
  store: MemoryStore,
  event: "intended" | "blocked" | "would_block" | "halted",
  ts_ms: number,
  detail?: string,
) {
  await store.transact({ run: (tx) => tx.append({ event, ts_ms, actor: "bot", tool: "crm.get", detail }) });
}

const totals = async (counts: HourCounts, now = NOW) => {
  const { hours, whole, calls } = await counts.lastDay(now);
  const sums = Object.fromEntries(
    COUNTED_DECISIONS.map((name) => [name, hours.reduce((sum, hour) => sum + hour[name], 0)]),
  );
  return { ...sums, whole, calls: calls.get("crm.get") ?? 0, hours };
};

describe("HourCounts", () => {
  it("distinguishes decisions", async () => {
    const store = new MemoryStore();
    await append(store, "intended", NOW - 2 * HOUR);
    await append(store, "would_block", NOW - HOUR);
    await append(store, "intended", NOW - HOUR);
    await append(store, "blocked", NOW, "no manifest is registered for this tool");
    await append(
      store,
      "blocked",
      NOW,
      "too much; approval required: request apr_1 is pending an operator decision",
    );
    await append(store, "halted", NOW);
    const found = await totals(new HourCounts(store));
    expect(found).toMatchObject({
      allowed: 1,
      would_block: 1,
      refused: 1,
      waiting: 1,
      whole: true,
      calls: 4,
    });
    const last = found.hours.at(-1)!;
    // As reports count them.
    expect(last.waiting + last.refused).toBe((await store.head()).events["blocked"]);
    expect(found.hours).toHaveLength(24);
    expect(found.hours.at(-1)).toMatchObject({ from_ms: 1_000 * HOUR, refused: 1, waiting: 1, allowed: 0 });
  });

  it("counts later records once, and forgets those older than a day", async () => {
    const store = new MemoryStore();
    const counts = new HourCounts(store);
    await append(store, "intended", NOW - 30 * HOUR);
    await append(store, "intended", NOW - 23 * HOUR);
    expect(await totals(counts)).toMatchObject({ allowed: 1 });
    await append(store, "intended", NOW);
    await Promise.all([totals(counts), totals(counts), totals(counts)]);
    expect(await totals(counts)).toMatchObject({ allowed: 2 });
    expect(await totals(counts, NOW + 2 * HOUR)).toMatchObject({ allowed: 1 });
  });

  it("reads a long ledger in pieces, the newest first", async () => {
    const store = new MemoryStore();
    await store.transact({
      run(tx) {
        for (let i = 0; i < 350; i++)
          tx.append({ event: "intended", ts_ms: NOW - HOUR, actor: "bot", tool: "crm.get" });
      },
    });
    const counts = new HourCounts(store, 10);
    expect(await totals(counts)).toMatchObject({ allowed: 150, whole: false });
    await append(store, "intended", NOW);
    expect(await totals(counts)).toMatchObject({ whole: false });
    expect(await totals(counts)).toMatchObject({ allowed: 351, whole: true });
  });

  it("continues after a store that was away for a moment", async () => {
    const store = new MemoryStore();
    await append(store, "intended", NOW);
    const counts = new HourCounts(store);
    const { head } = store;
    store.head = () => Promise.reject(new Error("away"));
    await expect(counts.lastDay(NOW)).rejects.toThrow("away");
    store.head = head;
    expect(await totals(counts)).toMatchObject({ allowed: 1 });
  });
});
