/** What a start makes of a damaged tail: torn lines are dropped loudly, anything else stops appends. */
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { allRecords, expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { countTrials } from "../../../test/support/trials.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { filesJobs } from "./jobs.ts";
import { openFilesStore } from "./store.ts";

class Place {
  readonly folder = join(tempDir(), "data");
  warnings: string[] = [];
  private saved = new Map<string, Buffer>();

  open(): Promise<StateStore> {
    this.warnings = [];
    return openFilesStore(this.folder, (message) => this.warnings.push(message), {
      helper: inlineHelper(() => filesJobs(this.folder)),
    });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): Buffer {
    return readFileSync(this.path(name));
  }

  /** Remembers every file that a start may change. */
  save(): void {
    this.saved = new Map(
      readdirSync(this.folder)
        .filter((name) => name.endsWith(".jsonl"))
        .map((name) => [name, this.read(name)]),
    );
  }

  restore(): void {
    for (const name of readdirSync(this.folder)) {
      if (name.endsWith(".jsonl") && !this.saved.has(name)) rmSync(this.path(name));
    }
    for (const [name, bytes] of this.saved) writeFileSync(this.path(name), bytes);
  }
}

async function prepared(...units: [name: string, count: number][]): Promise<Place> {
  const place = new Place();
  const store = await place.open();
  await work(store, "first");
  for (const [name, count] of units) await work(store, name, count);
  await store.close();
  place.save();
  return place;
}

function lineStarts(ledger: Buffer): number[] {
  const starts = [0];
  for (let at = ledger.indexOf(0x0a); at >= 0; at = ledger.indexOf(0x0a, at + 1)) starts.push(at + 1);
  return starts;
}

/** Nothing is added and no file is changed; recorded data is found, and missing data is reported. */
async function refusesCut(place: Place, records: number, what: string): Promise<void> {
  const before = [place.read("ledger.jsonl"), place.read("journal-1.jsonl")];
  const store = await place.open();
  expect(place.warnings, what).toEqual(["the ledger refuses new records"]);
  await expect(work(store, "no"), what).rejects.toThrow(/truncated, or is an older copy/);
  await expect(store.ready(), what).rejects.toMatchObject({ code: "corrupt" });
  expect((await store.head()).records, what).toBe(records);
  expect(await store.get("meta", "total"), what).toBe(records);
  await expect(store.records({ limit: 99 }), what).rejects.toMatchObject({ code: "corrupt" });
  await store.close();
  expect([place.read("ledger.jsonl"), place.read("journal-1.jsonl")], what).toEqual(before);
}

describe("a ledger cut at any byte of its last two lines", () => {
  it("drops a last line that was never acknowledged, loudly, and continues", async () => {
    const place = await prepared(["b", 1], ["c", 1], ["d", 1]);
    const ledger = place.read("ledger.jsonl");
    const starts = lineStarts(ledger);
    for (let cut = starts[3]!; cut < ledger.length; cut++) {
      place.restore();
      truncateSync(place.path("ledger.jsonl"), cut);
      const whole = starts.filter((start) => start > 0 && start <= cut).length;
      const store = await place.open();
      expect(place.warnings.join(), `cut at ${cut}`).toMatch(/dropped/);
      await store.ready();
      const units = await expectConsistent(store);
      expect([...units.keys()]).toEqual(["first", "b", "c", "d"].slice(0, whole));
      expect(place.read("ledger.jsonl")).toEqual(ledger.subarray(0, starts[whole]));
      expect(await work(store, "next")).toEqual([whole]);
      await expectConsistent(store);
      await store.close();
    }
    countTrials("files", "torn tail, at every byte", ledger.length - starts[3]!);
  });

  it("refuses if the journal says that the missing part was durable", { timeout: 180_000 }, async () => {
    const place = await prepared(["b", 1], ["c", 1], ["d", 1]);
    const starts = lineStarts(place.read("ledger.jsonl"));
    for (let cut = starts[2]!; cut < starts[3]!; cut++) {
      place.restore();
      truncateSync(place.path("ledger.jsonl"), cut);
      await refusesCut(place, 4, `cut at ${cut}`);
    }
    countTrials("files", "durable records cut off, at every byte", starts[3]! - starts[2]!);
  });

  it("refuses an older copy of itself, and takes the newest one back", async () => {
    const place = await prepared(["b", 1], ["c", 1]);
    const older = place.read("ledger.jsonl");
    const store = await place.open();
    for (const name of ["d", "e", "f"]) await work(store, name);
    await store.close();
    place.save();
    writeFileSync(place.path("ledger.jsonl"), older);
    await refusesCut(place, 6, "older copy");
    place.restore();
    const back = await place.open();
    await work(back, "next");
    expect([...(await expectConsistent(back)).keys()].at(-1)).toBe("next");
    await back.close();
  });

  it("keeps the whole lines of a unit that lost its last ones, without its documents", async () => {
    const place = await prepared(["b", 3]);
    const ledger = place.read("ledger.jsonl");
    const starts = lineStarts(ledger);
    for (const cut of [starts[3]! - 1, starts[3]!, starts[3]! + 1, ledger.length - 1]) {
      place.restore();
      truncateSync(place.path("ledger.jsonl"), cut);
      const whole = starts.filter((start) => start > 0 && start <= cut).length;
      const store = await place.open();
      expect(place.warnings.join()).toMatch(/kept .* records of an incomplete request/);
      const records = await allRecords(store);
      expect(records.map(({ run_id }) => run_id)).toEqual(["first", "b", "b", "b"].slice(0, whole));
      expect(await store.get("meta", "last/b")).toBeUndefined();
      expect(await store.get("meta", "total")).toBe(1);
      expect(await work(store, "next")).toEqual([whole]);
      expect((await store.records({ run_id: "b", limit: 9 })).length).toBe(whole - 1);
      await store.close();
      const again = await place.open();
      expect(place.warnings).toEqual([]);
      expect(await allRecords(again)).toHaveLength(whole + 1);
      await again.close();
    }
  });

  it("goes back to the same records after a journal was closed in between", async () => {
    const place = new Place();
    const tiny = { changes: 1, records: 1, bytes: 1 };
    // Journals are closed, and none of them is taken in: a crash before the checkpoint.
    const helper = { ask: () => Promise.reject(new Error("not now")), close: async () => {} };
    const open = () => openFilesStore(place.folder, () => {}, { helper, bounds: tiny });
    const store = await open();
    for (const name of ["a", "b", "c"]) await work(store, name);
    await store.close();
    expect(readdirSync(place.folder).filter((name) => name.startsWith("journal-"))).toHaveLength(2);
    place.save();
    const ledger = place.read("ledger.jsonl");
    const starts = lineStarts(ledger);
    for (const cut of [starts[2]!, starts[2]! + 9]) {
      place.restore();
      truncateSync(place.path("ledger.jsonl"), cut);
      const whole = starts.filter((start) => start > 0 && start <= cut).length;
      const cutStore = await place.open();
      expect([...(await expectConsistent(cutStore)).keys()]).toEqual(["a", "b", "c"].slice(0, whole));
      await work(cutStore, "next");
      await expectConsistent(cutStore);
      await cutStore.close();
    }
    for (const cut of [starts[0]!, starts[1]!, starts[1]! + 5]) {
      place.restore();
      truncateSync(place.path("ledger.jsonl"), cut);
      await refusesCut(place, 3, `cut at ${cut}`);
    }
  });

  it("reads zeros at the end as a line that never reached the disk", async () => {
    const place = await prepared(["b", 1]);
    const ledger = place.read("ledger.jsonl");
    const starts = lineStarts(ledger);
    const zeroed = Buffer.from(ledger);
    zeroed.fill(0, starts[1]! + 20);
    writeFileSync(place.path("ledger.jsonl"), zeroed);
    const store = await place.open();
    expect([...(await expectConsistent(store)).keys()]).toEqual(["first"]);
    await work(store, "next");
    await expectConsistent(store);
    await store.close();
  });
});

/** Every record is shown. Documents are refused, because they may be outdated; they are not reported as missing. */
async function expectLedgerAlone(store: StateStore, records: number): Promise<void> {
  expect(await allRecords(store)).toHaveLength(records);
  expect(await store.head()).toMatchObject({ records, events: { intended: records } });
  await expect(store.get("meta", "last/b")).rejects.toMatchObject({ code: "corrupt" });
  await expect(store.get("meta", "never")).rejects.toMatchObject({ code: "corrupt" });
  await expect(store.list("meta", { limit: 9 })).rejects.toMatchObject({ code: "corrupt" });
  await expect(store.count("meta")).rejects.toMatchObject({ code: "corrupt" });
}

describe("bit rot behind the checkpoint", () => {
  const refuses = async (place: Place, what: string): Promise<void> => {
    const store = await place.open();
    await expect(work(store, "no"), what).rejects.toMatchObject({ code: "corrupt" });
    await expect(store.ready(), what).rejects.toMatchObject({ code: "corrupt" });
    expect((await store.head()).records).toBe(3);
    expect(await store.get("meta", "last/first")).toEqual([0]);
    expect((await store.records({ limit: 9 })).length).toBe(3);
    await store.close();
  };

  it("in any byte of a whole ledger line stops appends; reading continues", async () => {
    const place = await prepared(["b", 1], ["c", 1]);
    const ledger = place.read("ledger.jsonl");
    const [, second, third] = lineStarts(ledger);
    for (let at = second!; at < third! - 1; at += 3) {
      place.restore();
      const bytes = Buffer.from(ledger);
      bytes[at]! ^= 1 << (at % 8);
      writeFileSync(place.path("ledger.jsonl"), bytes);
      await refuses(place, `byte ${at}`);
      expect(place.read("ledger.jsonl")).toEqual(bytes);
    }
  });

  it("in the last line, too: it is whole, so it is not torn", async () => {
    const place = await prepared(["b", 1], ["c", 1]);
    const bytes = place.read("ledger.jsonl");
    bytes[bytes.length - 9]! ^= 4;
    writeFileSync(place.path("ledger.jsonl"), bytes);
    await refuses(place, "last line");
  });

  it("in a journal stops appends", async () => {
    const place = await prepared(["b", 1], ["c", 1]);
    const bytes = place.read("journal-1.jsonl");
    const at = bytes.indexOf("last/c");
    bytes[at]! ^= 1;
    writeFileSync(place.path("journal-1.jsonl"), bytes);
    const store = await place.open();
    await expect(work(store, "no")).rejects.toMatchObject({ code: "corrupt" });
    await expectLedgerAlone(store, 3);
    expect(place.read("journal-1.jsonl")).toEqual(bytes);
    await store.close();
  });

  it("in a journal and in the ledger leaves nothing that is certain", async () => {
    const place = await prepared(["b", 1], ["c", 1]);
    for (const [name, text] of [
      ["journal-1.jsonl", "last/c"],
      ["ledger.jsonl", '"run_id":"b"'],
    ] as const) {
      const bytes = place.read(name);
      bytes[bytes.indexOf(text)]! ^= 1;
      writeFileSync(place.path(name), bytes);
    }
    const store = await place.open();
    await expect(store.head()).rejects.toMatchObject({ code: "corrupt" });
    await expect(store.records({ limit: 9 })).rejects.toMatchObject({ code: "corrupt" });
    await expect(store.get("meta", "total")).rejects.toMatchObject({ code: "corrupt" });
    await store.close();
  });

  it("at the line where the checkpoint ends is found at the start", async () => {
    const place = new Place();
    const store = await place.open();
    for (const name of ["first", "b", "c"]) await work(store, name);
    await store.scrub();
    await store.close();
    const bytes = place.read("ledger.jsonl");
    const hash = bytes.lastIndexOf('"hash":"');
    bytes[hash + 10] = bytes[hash + 10] === 0x30 ? 0x31 : 0x30;
    writeFileSync(place.path("ledger.jsonl"), bytes);
    await refuses(place, "boundary");
  });
});

describe("files that do not belong together", () => {
  it("refuse appends when the ledger is shorter than the checkpoint", async () => {
    const place = new Place();
    const store = await place.open();
    for (const name of ["a", "b", "c"]) await work(store, name);
    await store.scrub();
    await store.close();
    truncateSync(place.path("ledger.jsonl"), place.read("ledger.jsonl").length - 1);
    const cut = await place.open();
    await expect(work(cut, "no")).rejects.toThrow(/truncated/);
    expect(await cut.records({ to: 1, limit: 9 })).toHaveLength(2);
    await expect(cut.records({ limit: 9 })).rejects.toMatchObject({ code: "corrupt" });
    expect(await cut.get("meta", "total")).toBe(3);
    await cut.close();
  });

  it("refuse appends when the journal is missing, or is another store's", async () => {
    const place = await prepared(["b", 1]);
    rmSync(place.path("journal-1.jsonl"));
    const missing = await place.open();
    await expect(work(missing, "no")).rejects.toThrow(/journal-1.jsonl is missing/);
    await expectLedgerAlone(missing, 2);
    await missing.close();
    const other = await prepared(["x", 2], ["y", 1]);
    copyFileSync(other.path("journal-1.jsonl"), place.path("journal-1.jsonl"));
    const strange = await place.open();
    await expect(work(strange, "no")).rejects.toThrow(/disagree/);
    await strange.close();
  });

  it("refuse appends when the checkpoint is gone, and still show the ledger", async () => {
    const place = await prepared(["b", 1]);
    for (const name of readdirSync(place.folder)) if (name.startsWith("state.db")) rmSync(place.path(name));
    const store = await place.open();
    await expect(work(store, "no")).rejects.toThrow(/state.db.* is missing/);
    await expectLedgerAlone(store, 2);
    expect((await store.head()).hash).toBe((await allRecords(store)).at(-1)!.hash);
    await store.close();
    expect(existsSync(place.path("ledger.jsonl"))).toBe(true);
  });

  it("put aside, not away, records whose journal entry never reached the disk", async () => {
    const place = await prepared(["b", 1]);
    const journal = place.read("journal-1.jsonl");
    const ledger = place.read("ledger.jsonl");
    const seals = [...journal.toString().matchAll(/^\{.*\n/gm)];
    truncateSync(place.path("journal-1.jsonl"), seals[1]!.index + seals[1]![0].length);
    const store = await place.open();
    expect(place.warnings.join()).toMatch(/never acknowledged/);
    expect([...(await expectConsistent(store)).keys()]).toEqual(["first"]);
    const aside = readdirSync(place.folder).find((name) => name.startsWith("cut-"))!;
    expect(place.read(aside)).toEqual(ledger.subarray(lineStarts(ledger)[1]));
    await work(store, "next");
    await expectConsistent(store);
    await store.close();
  });
});
