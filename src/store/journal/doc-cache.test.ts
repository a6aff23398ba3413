import { expect, it } from "vitest";
import { DocCache } from "./doc-cache.ts";
import type { AnyDoc } from "./lines/block.ts";

const doc = { active: [] } as unknown as AnyDoc;

it("keeps what every decision reads, however large, and nothing else that is too large", () => {
  const cache = new DocCache(160);
  cache.set("halts", "all", doc, 1_000);
  cache.set("runs", "big", doc, 1_000);
  cache.set("runs", "small", doc, 1);
  expect(cache.get("halts", "all")).toBe(doc);
  expect(cache.get("runs", "big")).toBeUndefined();
  expect(cache.get("runs", "small")).toBe(doc);
  cache.forget("halts", "all");
  expect(cache.get("halts", "all")).toBeUndefined();
});

it("drops documents that nobody read in a generation, and keeps the others", () => {
  const cache = new DocCache(160);
  cache.set("runs", "used", doc, 5);
  cache.set("runs", "unused", doc, 5);
  for (let i = 0; i < 100; i++) {
    cache.set("runs", `r${i}`, doc, 5);
    cache.get("runs", "used");
  }
  expect(cache.get("runs", "used")).toBe(doc);
  expect(cache.get("runs", "unused")).toBeUndefined();
});

it("knows what does not exist until it is forgotten", () => {
  const cache = new DocCache(160);
  cache.set("runs", "none", null, 5);
  expect(cache.get("runs", "none")).toBeNull();
  cache.forget("runs", "none");
  expect(cache.get("runs", "none")).toBeUndefined();
});
