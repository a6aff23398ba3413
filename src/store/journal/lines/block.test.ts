/** Journal text: exactly the written text is read back. */
import { describe, expect, it } from "vitest";
import type { StoreTx } from "../../../govern/port/store.ts";
import { TABLE_INDEX, TABLE_NAMES } from "../../../govern/port/tables.ts";
import { EMPTY_HEAD } from "../../../ledger/record.ts";
import { type CommittedUnit, type PendingUnit, UnitBatch } from "../../batch.ts";
import { DocOverlay } from "../overlay.ts";
import { LIST_INDEXES } from "../schema.ts";
import { encodeBatch, type JournalDoc, parseSlot, type UnitBlock } from "./block.ts";
import { hasLostSector, parseJournal, unitsOf } from "./parse-journal.ts";

function committed(...units: ((tx: StoreTx) => void)[]): CommittedUnit[] {
  const batch = new UnitBatch(EMPTY_HEAD, () => undefined);
  for (const run of units) batch.run({ unit: { run }, outcome: undefined } satisfies PendingUnit);
  return batch.units;
}

const UNITS = committed(
  (tx) => {
    tx.append({ ts_ms: 1, event: "intended", actor: "ü", run_id: "r", tool: 'a"b', reason: "x" });
    tx.put("meta", 'key "quoted"\n\\', { text: "two\nlines, ü, \u2028, \\" });
    tx.put("idempotency", "i", { run_id: "r\\", step: 7 });
  },
  (tx) => tx.delete("meta", "gone"),
  (tx) => {
    tx.append({ ts_ms: 2, event: "halted", actor: "b" });
    tx.append({ ts_ms: 3, event: "resumed", actor: "b" });
  },
);
const SEED = 0x1234;
const encoded = encodeBatch(UNITS, { size: 0, crc: SEED }, { ledger: 3, journal: 4 });
const bytes = Buffer.from(encoded.text);

/** Content of a unit, without its position. */
function meaning(unit: UnitBlock): unknown {
  const puts = unit.puts.map(({ table, key, slot }) => [
    table,
    key,
    slot && "doc" in slot ? plain(slot) : slot,
  ]);
  return { ...unit, puts, from: undefined, to: undefined, crc: undefined };
}
const plain = (slot: JournalDoc): unknown => ({
  owner: slot.owner,
  sort: slot.sort,
  tag: slot.tag,
  doc: parseSlot(slot),
});

const units = (parsed: ReturnType<typeof parseJournal>): unknown[] => unitsOf(parsed.items).map(meaning);
const all = encoded.units.map(meaning);

describe("a journal", () => {
  it("is read back as it was written", () => {
    const parsed = parseJournal(bytes, 0, SEED);
    expect(parsed.rest).toBe("none");
    expect(parsed.crc).toBe(encoded.tip.crc);
    expect(units(parsed)).toEqual(all);
    expect(parsed.items.map(({ to }) => to).at(-1)).toBe(bytes.length);
    for (const line of encoded.text.trimEnd().split("\n")) JSON.parse(line);
  });

  it("cut at any byte gives the units before the cut", () => {
    const ends = parseJournal(bytes, 0, SEED).items.map(({ to }) => to);
    for (let cut = 0; cut < bytes.length; cut++) {
      const parsed = parseJournal(bytes.subarray(0, cut), 0, SEED);
      const whole = ends.filter((end) => end <= cut).length;
      expect(parsed.rest, `cut at ${cut}`).toBe(ends.includes(cut) || cut === 0 ? "none" : "torn");
      expect(units(parsed)).toEqual(all.slice(0, whole));
    }
  });

  it("with any bit flipped never gives a unit that was not written", () => {
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = Buffer.from(bytes);
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      const parsed = parseJournal(damaged, 0, SEED);
      const found = units(parsed);
      expect(found.length, `bit ${bit}`).toBeLessThan(all.length);
      expect(found).toEqual(all.slice(0, found.length));
      expect(parsed.rest).not.toBe("none");
    }
  });

  it("has seals of one plain record that are read as all others are", () => {
    const at = { ts_ms: 1, event: "intended", actor: "bot" } as const;
    const history = committed(
      (tx) => tx.append(at),
      (tx) => tx.append({ ...at, run_id: "r" }),
      (tx) => tx.append({ ...at, run_id: "", tool: "0", tenant: "acme" }),
      (tx) => tx.append({ ...at, run_id: '"', tenant: "\\" }),
      (tx) => tx.append({ ...at, tool: "t", tenant: 'x",0]],"end":1}' }),
    );
    const written = encodeBatch(history, { size: 7, crc: SEED }, { ledger: 3, journal: 4 });
    const parsed = parseJournal(Buffer.from(written.text), 0, SEED);
    expect(units(parsed)).toEqual(written.units.map(meaning));
    expect(parsed.crc).toBe(written.tip.crc);
  });

  it("writes the changes of a document it has written, and reads the same result as from whole ones", () => {
    const count = (calls: number) => ({ run_id: "r", tool: 't"', calls, standing: 0 });
    const history = committed(
      (tx) => tx.put("meta", "none", 0),
      (tx) => tx.put("meta", "none", 1),
      (tx) => tx.put("run_tools", "k", count(1)),
      (tx) => tx.put("run_tools", "k", count(2)),
      (tx) => tx.delete("run_tools", "k"),
      (tx) => tx.put("run_tools", "k", count(3)),
      (tx) => tx.put("run_tools", "k", count(4)),
      (tx) => tx.put("run_tools", "k", { ...count(5), tool: "another" }),
    );
    const read = (text: string): { docs: unknown[]; lines: number[] } => {
      const overlay = new DocOverlay(1);
      const docs = unitsOf(parseJournal(Buffer.from(text), 0, SEED).items).map(({ puts }) => {
        for (const put of puts) overlay.take(put);
        const slot = overlay.get("run_tools", "k");
        return slot && plain(slot);
      });
      const lines = text.split("\n").filter((line) => line.startsWith("["));
      return { docs, lines: lines.map((line) => JSON.parse(line).length) };
    };
    const whole = read(encodeBatch(history, { size: 0, crc: SEED }).text);
    const short = read(encodeBatch(history, { size: 0, crc: SEED }, undefined, () => undefined).text);
    expect(short.docs).toEqual(whole.docs);
    expect(whole.lines).toEqual([6, 6, 6, 6, 2, 6, 6, 6]);
    expect(short.lines).toEqual([6, 6, 6, 4, 2, 6, 4, 6]);
  });

  it("does not follow another one", () => {
    expect(parseJournal(bytes, 0, SEED + 1).items).toEqual([]);
    const doubled = Buffer.concat([bytes, bytes]);
    expect(parseJournal(doubled, 0, SEED).items).toHaveLength(all.length);
  });

  it("tells a lost sector from damage, and damage from both where a later block knew better", () => {
    const padded = encodeBatch(
      committed((tx) => tx.put("meta", "a", "x".repeat(2_000))),
      { size: 0, crc: SEED },
    );
    const lost = Buffer.from(padded.text);
    lost.fill(0, 512, 1_024);
    expect(parseJournal(lost, 0, SEED).rest).toBe("torn");
    const flipped = Buffer.from(padded.text);
    flipped[700]! ^= 1;
    expect(parseJournal(flipped, 0, SEED).rest).toBe("broken");
    const synced = { ledger: 0, journal: lost.length };
    const after = encodeBatch(
      committed((tx) => tx.put("meta", "b", 1)),
      padded.tip,
      synced,
    );
    expect(parseJournal(Buffer.concat([lost, Buffer.from(after.text)]), 0, SEED).rest).toBe("broken");
  });
});

describe("a lost sector", () => {
  it("is zeros up to its end or the file's", () => {
    const text = Buffer.alloc(2_000, 0x61);
    const zeroed = (from: number, to: number): Buffer => Buffer.from(text).fill(0, from, to);
    expect(hasLostSector(text, 0, 0)).toBe(false);
    expect(hasLostSector(zeroed(300, 512), 0, 0)).toBe(true);
    expect(hasLostSector(zeroed(300, 511), 0, 0)).toBe(false);
    expect(hasLostSector(zeroed(1_990, 2_000), 0, 0)).toBe(true);
    expect(hasLostSector(zeroed(300, 512), 600, 0)).toBe(false);
    expect(hasLostSector(zeroed(300, 412), 0, 100)).toBe(true);
  });
});

it("a table without its own index has no order either", () => {
  for (const table of TABLE_NAMES) {
    if (LIST_INDEXES[table].length === 0) expect(TABLE_INDEX[table], table).toBe(TABLE_INDEX.meta);
  }
});
