/** Every call to the disk fails once, in every way: nothing is acknowledged that is not there, and it heals. */
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type Fault, faultyDisk, inlineHelper } from "../../../test/support/faulty-disk.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { countTrials } from "../../../test/support/trials.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { SvcError } from "../../kernel/errors.ts";
import { IndeterminateCommitError } from "../indeterminate-commit.ts";
import { filesJobs } from "./jobs.ts";
import { openFilesStore } from "./store.ts";

const bounds = { changes: 16, records: 100, bytes: 1_000_000 };

function open(folder: string, disk = faultyDisk()): Promise<StateStore> {
  return openFilesStore(folder, () => {}, { disk, bounds, helper: inlineHelper(() => filesJobs(folder)) });
}

/** What became of it: `acked`, `unknown` where it may be found, or the code of its refusal. */
const told = (doing: Promise<unknown>): Promise<string> =>
  doing.then(
    () => "acked",
    (error: SvcError) => (error instanceof IndeterminateCommitError ? "unknown" : error.code),
  );

interface Outcome {
  acked: string[];
  refused: string[];
  unknown: string[];
}

/** Units alone and together, one of several records, two journals and a scrub. */
async function workload(store: StateStore): Promise<Outcome> {
  const outcome: Outcome = { acked: [], refused: [], unknown: [] };
  const attempt = async (name: string, count: number): Promise<void> => {
    try {
      await work(store, name, count);
      outcome.acked.push(name);
    } catch (error) {
      expect(error).toBeInstanceOf(SvcError);
      expect((error as SvcError).code).toBe("unavailable");
      (error instanceof IndeterminateCommitError ? outcome.unknown : outcome.refused).push(name);
    }
  };
  await attempt("a", 1);
  await Promise.all([attempt("b", 2), attempt("c", 1), attempt("d", 3)]);
  await attempt("e", 1);
  await store.scrub().catch(() => {});
  for (const name of ["f", "g", "h"]) await attempt(name, 1);
  await Promise.all([attempt("i", 1), attempt("j", 2)]);
  return outcome;
}

async function calls(): Promise<{ first: number; last: number; log: readonly string[] }> {
  const folder = join(tempDir(), "data");
  const disk = faultyDisk();
  const store = await open(folder, disk);
  const first = disk.calls + 1;
  await workload(store);
  await store.close();
  return { first, last: disk.calls, log: disk.log };
}

async function trial(fault: Fault): Promise<void> {
  const folder = join(tempDir(), "data");
  const disk = faultyDisk();
  const store = await open(folder, disk);
  disk.fail(fault);
  const { acked, refused, unknown } = await workload(store);
  disk.fail(undefined);
  if (fault.lasting) expect(refused.length + unknown.length).toBeGreaterThan(0);
  // A disk that fails once can be asked again, and then it is known.
  else expect(unknown).toEqual([]);
  // Healed without a restart.
  await work(store, "after");
  await store.ready();
  const units = await expectConsistent(store);
  for (const name of [...acked, "after"]) expect(units.has(name), `${name} was acknowledged`).toBe(true);
  for (const name of refused) expect(units.has(name), `${name} was refused`).toBe(false);
  await store.close();

  const again = await open(folder);
  expect(await expectConsistent(again)).toEqual(units);
  await work(again, "again");
  await expectConsistent(again);
  await again.close();
}

describe("a disk call that fails", () => {
  const ways: Omit<Fault, "call">[] = [
    { code: "EIO" },
    { code: "ENOSPC" },
    { code: "EIO", half: true },
    { code: "EROFS", lasting: true },
  ];
  for (const way of ways) {
    const words = [way.code, way.half ? "after half of a write" : "", way.lasting ? "from then on" : ""];
    it(`with ${words.filter(Boolean).join(" ")}, for every call of a workload`, {
      timeout: 300_000,
    }, async () => {
      const { first, last, log } = await calls();
      expect(last - first).toBeGreaterThan(40);
      let trials = 0;
      for (let call = first; call <= last; call++) {
        if (way.half && log[call - 1] !== "write") continue;
        await trial({ ...way, call }).catch((error) => {
          throw new Error(`call ${call} (${log[call - 1]}): ${(error as Error).message}`, { cause: error });
        });
        trials++;
      }
      countTrials("files", `disk calls that fail (${words.filter(Boolean).join(" ")})`, trials);
    });
  }
});

/** Two handles on one folder, the first of them on this disk, with one unit recorded. */
async function two(disk: ReturnType<typeof faultyDisk>) {
  const folder = join(tempDir(), "data");
  const store = await open(folder, disk);
  const other = await open(folder);
  await work(store, "a");
  return {
    folder,
    store,
    other,
    /** Until the other one has seen the unit: it is written then, and perhaps not durable. */
    seen: (name: string) =>
      vi.waitFor(async () => expect(await other.get("meta", `last/${name}`)).toBeDefined(), { interval: 5 }),
    /** Both hold these units in the end and nothing else. */
    async hold(...names: string[]) {
      for (const handle of [store, other]) {
        expect([...(await expectConsistent(handle)).keys()]).toEqual(names);
        await handle.close();
      }
    },
  };
}

describe("a sync that fails", () => {
  /** A disk whose next sync of a batch first lets something happen, and then fails. */
  const failing = () => {
    const disk = faultyDisk();
    let meanwhile: (() => Promise<unknown>) | undefined;
    const { datasync } = disk;
    disk.datasync = async (fd) => {
      const act = meanwhile;
      meanwhile = undefined;
      if (act === undefined) return datasync(fd);
      await act();
      throw Object.assign(new Error("EIO: made up"), { code: "EIO" });
    };
    return {
      disk,
      failAfter: (act: () => Promise<unknown>) => {
        meanwhile = act;
      },
    };
  };

  it("is repaired, and the part of its batch that others have seen stays", async () => {
    const { disk, failAfter } = failing();
    const { folder, store, other, seen, hold } = await two(disk);
    failAfter(() => seen("b"));
    expect(await told(work(store, "b"))).toBe("acked");
    expect(await other.get("meta", "last/b")).toBeDefined();
    await work(other, "c");
    await work(store, "d");
    await store.scrub();
    await hold("a", "b", "c", "d");
    const again = await open(folder);
    expect([...(await expectConsistent(again)).keys()]).toEqual(["a", "b", "c", "d"]);
    await again.close();
  });

  it("does not refuse a caller that had seen the batch and slept until its journal was gone", async () => {
    const { disk, failAfter } = failing();
    const { store, other, seen, hold } = await two(disk);
    failAfter(() => seen("b"));
    expect(await told(work(store, "b"))).toBe("acked");
    await store.scrub();
    await work(store, "c");
    await work(other, "d");
    await hold("a", "b", "c", "d");
  });

  it("is made good for with others' and this process's later work", async () => {
    const { disk, failAfter } = failing();
    const { store, other, seen, hold } = await two(disk);
    let behind: Promise<unknown> | undefined;
    failAfter(async () => {
      await work(other, "others");
      behind = told(work(store, "c"));
      await seen("c");
    });
    expect(await told(work(store, "b"))).toBe("acked");
    expect(await behind).toBe("acked");
    await work(store, "d");
    await hold("a", "b", "others", "c", "d");
  });

  it("and cannot be made good for: the writer learns that it may be found, nobody is shown it", async () => {
    const { disk, failAfter } = failing();
    const { store, hold } = await two(disk);
    let looks: Promise<string>[] = [];
    failAfter(async () => {
      looks = [told(store.get("meta", "last/b")), told(store.head()), told(store.transact({ run: () => 1 }))];
      disk.fail({ call: disk.calls, code: "EIO", lasting: true });
    });
    expect(await told(work(store, "b"))).toBe("unknown");
    expect(await Promise.all(looks)).toEqual(["unavailable", "unavailable", "unavailable"]);
    expect(await told(store.get("meta", "last/b"))).toBe("unavailable");
    expect(await told(work(store, "c"))).toBe("unavailable");
    disk.fail(undefined);
    // Once the disk is well again a look alone makes it durable, and then it is shown.
    expect(await store.get("meta", "last/b")).toBeDefined();
    await work(store, "d");
    await hold("a", "b", "d");
  });
});

describe("a limit on how long a file may get", () => {
  /** As `ulimit -f` has it: nothing is written beyond that place in any file. */
  const limited = () => {
    const disk = faultyDisk();
    let limit = Number.POSITIVE_INFINITY;
    const { write } = disk;
    disk.write = async (fd, bytes, position) => {
      if ((position ?? disk.facts(fd).size) + bytes.length > limit)
        throw Object.assign(new Error("EFBIG: made up"), { code: "EFBIG" });
      return write(fd, bytes, position);
    };
    return {
      disk,
      set: (bytes: number) => {
        limit = bytes;
      },
    };
  };

  it("is reported by readiness as soon as it happened, and until it is gone", async () => {
    const { disk, set } = limited();
    const folder = join(tempDir(), "data");
    const store = await open(folder, disk);
    await work(store, "a", 60);
    await store.ready();
    // The ledger is at its limit; the journal of the next batch, and the file that readiness tries, are not.
    set(16_384);
    expect((await store.head()).records).toBe(60);
    expect(await told(work(store, "b"))).toBe("unavailable");
    for (let i = 0; i < 2; i++) await expect(store.ready()).rejects.toThrow(/EFBIG/);
    // A start knows of no failure, and finds it out.
    const again = await open(folder, disk);
    await expect(again.ready()).rejects.toMatchObject({ code: "unavailable" });
    set(Number.POSITIVE_INFINITY);
    for (const handle of [store, again]) await handle.ready();
    await work(store, "c");
    expect([...(await expectConsistent(again)).keys()]).toEqual(["a", "c"]);
    await Promise.all([store.close(), again.close()]);
  });
});

describe("a sync that takes long", () => {
  it("lets the next batch be written, and answers both in their order", async () => {
    const disk = faultyDisk();
    const { datasync } = disk;
    let gate: Promise<void> | undefined;
    disk.datasync = async (fd) => {
      await gate;
      return datasync(fd);
    };
    const { store, seen, hold } = await two(disk);
    let release: (() => void) | undefined;
    gate = new Promise((resolve) => {
      release = resolve;
    });
    const answered: string[] = [];
    const first = work(store, "b").then(() => answered.push("b"));
    await seen("b");
    const second = work(store, "c").then(() => answered.push("c"));
    await seen("c");
    expect(answered).toEqual([]);
    gate = undefined;
    release!();
    await Promise.all([first, second]);
    expect(answered).toEqual(["b", "c"]);
    await hold("a", "b", "c");
  });
});
