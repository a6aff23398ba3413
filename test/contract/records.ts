/** Record queries: filters, order, bounds and text, by example and against a plain model. */
import { describe, expect, it } from "vitest";
import type { RecordQuery, StateStore } from "../../src/govern/port/store.ts";
import type { RecordDraft } from "../../src/ledger/record.ts";
import { seeded } from "../support/env.ts";
import { append, draft, T0 } from "./samples.ts";
import type { Bench } from "./store.ts";

const HOUR = 3_600_000;
/** Names that a text search could confuse with one another, or with something else. */
const TENANTS = ["acme", "acme-2", 'a "b" \\ c', "ümlaut", "nul\0", ',"tenant":"acme",'];

export function recordTests(bench: Bench): void {
  describe("records", () => {
    it("are canonical lines without line breaks, in order", async () => {
      const store = await bench.open();
      expect(await store.records({ limit: 10 })).toEqual([]);
      await write(store, [{ reason: "two\nlines" }, {}, {}]);
      const lines = await store.records({ limit: 10 });
      expect(lines.some((line) => line.includes("\n"))).toBe(false);
      expect(seqs(lines)).toEqual([0, 1, 2]);
      expect(seqs(await store.records({ order: "desc", limit: 2 }))).toEqual([2, 1]);
      expect(await store.records({ limit: 0 })).toEqual([]);
    });

    it("take bounds on seq, both inclusive, and continue from there", async () => {
      const store = await bench.open();
      await write(
        store,
        Array.from({ length: 30 }, () => ({})),
      );
      expect(seqs(await store.records({ from: 3, to: 5, limit: 10 }))).toEqual([3, 4, 5]);
      expect(seqs(await store.records({ from: 3, to: 5, order: "desc", limit: 2 }))).toEqual([5, 4]);
      expect(await store.records({ from: 30, limit: 10 })).toEqual([]);
      expect(await store.records({ from: 5, to: 3, limit: 10 })).toEqual([]);
      const seen: number[] = [];
      for (let from = 0; ; from = seen.at(-1)! + 1) {
        const page = seqs(await store.records({ from, limit: 7 }));
        if (page.length === 0) break;
        seen.push(...page);
      }
      expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => i));
    });

    it("filter by run, event, actor, tool and time", async () => {
      const store = await bench.open();
      await write(store, [
        { run_id: "r1", event: "intended", actor: "ann", tool: "a.b", ts_ms: T0 },
        { run_id: "r2", event: "blocked", actor: "bob", tool: "a.c", ts_ms: T0 + 10 },
        { run_id: "r1", event: "succeeded", actor: "ann", tool: "a.b", ts_ms: T0 + 20 },
        { event: "halted", actor: "eve", ts_ms: T0 + 30 },
      ]);
      const find = async (query: Omit<RecordQuery, "limit">) =>
        seqs(await store.records({ ...query, limit: 9 }));
      expect(await find({ run_id: "r1" })).toEqual([0, 2]);
      expect(await find({ run_id: "r1", order: "desc" })).toEqual([2, 0]);
      expect(await find({ event: "blocked" })).toEqual([1]);
      expect(await find({ event: ["halted", "intended"] })).toEqual([0, 3]);
      expect(await find({ event: ["halted", "intended"], order: "desc" })).toEqual([3, 0]);
      expect(await find({ event: [] })).toEqual([]);
      expect(await find({ event: "no_such_event" })).toEqual([]);
      expect(await find({ actor: "ann", tool: "a.b", from: 1 })).toEqual([2]);
      expect(await find({ tool: "a" })).toEqual([]);
      expect(await find({ since_ms: T0 + 10 })).toEqual([1, 2, 3]);
      expect(await find({ until_ms: T0 + 10 })).toEqual([0, 1]);
      expect(await find({ since_ms: T0 + 10, until_ms: T0 + 20, actor: "ann" })).toEqual([2]);
      expect(await find({ since_ms: T0 + 31 })).toEqual([]);
      expect(await find({ until_ms: T0 - 1 })).toEqual([]);
    });

    it("are found by time although the clock jumped", async () => {
      const store = await bench.open();
      const times = [0, 2 * HOUR, 1, 26 * HOUR, -HOUR, 2 * HOUR, 3];
      for (const ms of times) await append(store, { ts_ms: T0 + ms });
      const between = async (since: number, until: number, order: "asc" | "desc") =>
        seqs(await store.records({ since_ms: T0 + since, until_ms: T0 + until, order, limit: 9 }));
      expect(await between(0, 3, "asc")).toEqual([0, 2, 6]);
      expect(await between(HOUR, 3 * HOUR, "desc")).toEqual([5, 1]);
      expect(await between(-2 * HOUR, -1, "asc")).toEqual([4]);
      expect(seqs(await store.records({ since_ms: T0 + 10 * HOUR, limit: 9 }))).toEqual([3]);
      expect(seqs(await store.records({ until_ms: T0, order: "desc", limit: 9 }))).toEqual([4, 0]);
    });

    it("are found by text in any case, taken literally", async () => {
      const store = await bench.open();
      await write(store, [
        { reason: "Refund for ORDER 100% done\n\tand gone" },
        { reason: "snake_case and back\\slash" },
        { reason: 'said "hello"' },
        { reason: "GRÜSSE aus Köln, ΑΘΗΝΑ" },
        { reason: "nothing" },
      ]);
      const find = async (q: string) => seqs(await store.records({ q, limit: 9 }));
      expect(await find("order 100%")).toEqual([0]);
      expect(await find("REFUND")).toEqual([0]);
      expect(await find("0_ d")).toEqual([]);
      expect(await find("%")).toEqual([0]);
      expect(await find("_case")).toEqual([1]);
      expect(await find("BACK\\slash")).toEqual([1]);
      expect(await find("back\\\\slash")).toEqual([]);
      expect(await find('said "hello"')).toEqual([2]);
      expect(await find('\\"hello\\"')).toEqual([]);
      expect(await find("done\n\tand gone")).toEqual([0]);
      expect(await find("reason")).toEqual([]);
      expect(await find('":"')).toEqual([]);
      expect(await find(`${T0}`)).toEqual([0, 1, 2, 3, 4]);
      expect(await find("grüsse AUS kÖLN")).toEqual([3]);
      expect(await find("αθηνα")).toEqual([3]);
      expect(await find("Köln, B")).toEqual([]);
      expect(await find("\u0000")).toEqual([]);
      expect(await find("")).toEqual([0, 1, 2, 3, 4]);
      expect(seqs(await store.records({ q: "ü", order: "desc", limit: 1 }))).toEqual([3]);
    });

    it("agree with a plain model on any query", async () => {
      const store = await bench.open();
      const random = seeded(11);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
      const maybe = <T>(make: () => T): T | undefined => (random() < 0.4 ? make() : undefined);
      const drafts = Array.from({ length: 150 }, () =>
        draft({
          ts_ms: T0 + Math.floor(random() * 5) * HOUR,
          event: pick(["intended", "blocked", "succeeded"] as const),
          actor: pick(["ann", "bob"]),
          run_id: maybe(() => pick(["r1", "r2", "r3"])),
          tool: maybe(() => pick(["a.b", "c.d"])),
          tenant: maybe(() => pick(TENANTS)),
          reason: maybe(() => pick(["Alpha", "beta", "Übung"])),
        }),
      );
      for (let at = 0; at < drafts.length; at += 30) await write(store, drafts.slice(at, at + 30));
      for (let i = 0; i < 150; i++) {
        const query: RecordQuery = {
          from: maybe(() => Math.floor(random() * 160)),
          to: maybe(() => Math.floor(random() * 160)),
          run_id: maybe(() => pick(["r1", "r2", "r9"])),
          event: maybe(() => pick(["intended", ["blocked", "succeeded"], ["blocked", "failed"]])),
          actor: maybe(() => pick(["ann", "bob", "eve"])),
          tool: maybe(() => pick(["a.b", "c.d"])),
          tenant: maybe(() => pick(TENANTS)),
          since_ms: maybe(() => T0 + Math.floor(random() * 5) * HOUR),
          until_ms: maybe(() => T0 + Math.floor(random() * 5) * HOUR),
          q: maybe(() => pick(["alpha", "BETA", "übung", "nope"])),
          order: maybe(() => pick(["asc", "desc"] as const)),
          limit: pick([1, 10, 1_000]),
        };
        expect(seqs(await store.records(query)), JSON.stringify(query)).toEqual(model(drafts, query));
      }
    });
  });
}

function seqs(lines: readonly string[]): number[] {
  return lines.map((line) => (JSON.parse(line) as { seq: number }).seq);
}

function write(store: StateStore, drafts: readonly Partial<RecordDraft>[]): Promise<void> {
  return store.transact({
    run: (tx) => {
      for (const more of drafts) tx.append(draft(more));
    },
  });
}

function model(drafts: readonly RecordDraft[], query: RecordQuery): number[] {
  const events = typeof query.event === "string" ? [query.event] : query.event;
  const found = drafts
    .map((record, seq) => ({ ...record, seq }))
    .filter(({ seq }) => seq >= (query.from ?? 0) && seq <= (query.to ?? drafts.length))
    .filter(({ run_id }) => query.run_id === undefined || run_id === query.run_id)
    .filter(({ event }) => events === undefined || events.includes(event))
    .filter(({ actor }) => query.actor === undefined || actor === query.actor)
    .filter(({ tool }) => query.tool === undefined || tool === query.tool)
    .filter(({ tenant }) => query.tenant === undefined || tenant === query.tenant)
    .filter(({ ts_ms }) => query.since_ms === undefined || ts_ms >= query.since_ms)
    .filter(({ ts_ms }) => query.until_ms === undefined || ts_ms <= query.until_ms)
    .filter(({ reason }) => query.q === undefined || reason?.toLowerCase().includes(query.q.toLowerCase()))
    .map(({ seq }) => seq);
  return (query.order === "desc" ? found.reverse() : found).slice(0, query.limit);
}
