/** Capture on every store: written, listed, finished, expired and purged alike. */
import { describe, expect, it } from "vitest";
import { purgeCaptures } from "../../src/capture/captured-calls.ts";
import { filesPlace, type MakePlace, memoryPlace, postgresPlace, sqlitePlace } from "../contract/place.ts";
import { capturing, NOON } from "./support.ts";

const PLACES: Record<string, MakePlace> = {
  memory: memoryPlace,
  files: filesPlace,
  sqlite: sqlitePlace,
  postgres: postgresPlace,
};

describe.each(Object.keys(PLACES))("on the %s store", (name) => {
  it("keeps, finishes, lists and deletes captured calls", async () => {
    const place = await PLACES[name]!();
    const store = await place.open();
    const s = await capturing({ store, capture: "{enabled: true, ttl: 1h}" });
    await s.open("a");
    await s.open("b");
    for (let n = 0; n < 20; n++) await s.call(n % 2 === 0 ? "a" : "b", "crm.get", { n }, { n });
    await s.ask("a", "no.such", { n: 20 });
    const calls = await s.captured();
    expect(calls.map(({ args }) => (args as { n: number }).n)).toEqual(
      Array.from({ length: 21 }, (_, n) => n),
    );
    expect(calls.map(({ outcome }) => outcome)).toEqual([...Array(20).fill("succeeded"), null]);
    expect(calls[3]).toMatchObject({ run_id: "b", step: 1, result: { n: 3 }, has_result: true });
    expect(await purgeCaptures(store, { run_id: "b" })).toBe(10);
    s.env.setNow(NOON + 3_600_000);
    expect(await s.captured()).toEqual([]);
    expect(await purgeCaptures(store, { expired_at_ms: s.env.now() })).toBe(11);
    expect(await store.count("captures")).toBe(0);
    await s.close();
    await place.dispose();
  });
});
