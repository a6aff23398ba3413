import { describe, expect, it } from "vitest";
import { LruMap } from "./lru.ts";

describe("Lru", () => {
  it("keeps used entries, however many others come and go", () => {
    const lru = new LruMap<string, number>(10);
    lru.set("kept", 1);
    for (let i = 0; i < 1_000; i++) {
      lru.set(`other ${i}`, i);
      if (i % 3 === 0) expect(lru.get("kept")).toBe(1);
    }
  });

  it("keeps the last half of its capacity, and no more than all of it", () => {
    const lru = new LruMap<number, number>(10);
    for (let i = 0; i < 100; i++) lru.set(i, i);
    const there = Array.from({ length: 100 }, (_, i) => i).filter((i) => lru.get(i) !== undefined);
    expect(there.length).toBeLessThanOrEqual(10);
    expect(there).toEqual(expect.arrayContaining([95, 96, 97, 98, 99]));
  });

  it("answers the newest value, and nothing that was deleted, whichever generation holds it", () => {
    const lru = new LruMap<string, number>(4);
    lru.set("a", 1);
    lru.set("b", 2);
    lru.set("c", 3);
    lru.set("a", 9);
    expect(lru.get("a")).toBe(9);
    lru.delete("a");
    lru.delete("b");
    expect([lru.get("a"), lru.get("b"), lru.get("c")]).toEqual([undefined, undefined, 3]);
    lru.clear();
    expect(lru.get("c")).toBeUndefined();
  });
});
