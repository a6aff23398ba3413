import { describe, expect, it } from "vitest";
import { rollbackBench } from "../../../test/sim/rollback-fixture.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { resolveUnit } from "../../govern/decide/outcome.ts";
import { compensationKey } from "../../govern/document-keys.ts";
import { haltUnit } from "../../govern/halts/halts.ts";
import { RollbackInterrupted, type RollbackProgress } from "./execute.ts";

const EMPTY = {
  compensated: [],
  skipped: [],
  failed: [],
  unrecoverable: [],
  unresolved: [],
  unmanifested: [],
  deferred: [],
  awaiting_approval: [],
  unverified: [],
  complete: true,
};

async function bench(tools: string[] = [], mode: "enforce" | "observe" = "enforce") {
  const made = rollbackBench();
  await made.openRun("r1", mode);
  for (const tool of tools) await made.act(tool);
  return made;
}

describe("a rollback", () => {
  it(`undoes newest first, one at a time, each recorded before and after ${verifies("core.rollback.newest-first", "core.rollback.one-at-a-time", "core.step-state.compensating", "core.event.compensating", "core.event.compensated", "core.report.compensated", "core.report.complete")}`, async () => {
    const b = await bench(["db.create", "db.fill", "db.read", "db.create"]);
    const report = await b.rollback();
    expect(report).toEqual({ ...EMPTY, compensated: [3, 1, 0], skipped: [2] });
    expect(b.world.order).toEqual([3, 1, 0]);
    expect(b.world.most).toBe(1);
    expect(await b.undoTrail()).toEqual([
      "compensating 3",
      "compensated 3",
      "compensating 1",
      "compensated 1",
      "compensating 0",
      "compensated 0",
    ]);
    expect(b.recorded).toEqual([
      "compensating",
      "compensated",
      "compensating",
      "compensated",
      "compensating",
      "compensated",
    ]);
    expect((await b.trail()).at(-1)).toMatchObject({ actor: "olga", tool: "db.create", step: 0 });
    expect(await b.store.list("leases", { limit: 10 })).toEqual([]);
  });

  it(`gives the compensator the documented call ${verifies("core.rollback.call-json", "core.purpose.rollback-by-manifest", "core.outcome.result-for-undo", "contract.readings.library-functions")}`, async () => {
    const b = await bench();
    await b.act("db.create", { args: { name: "ann", other: 1 }, result: { id: 7, more: 2 } });
    await b.rollback();
    expect(b.world.calls).toEqual([
      {
        run_id: "r1",
        step: 0,
        tool: "db.delete",
        original_tool: "db.create",
        args: { id: 7, name: "ann" },
        idempotency_key: compensationKey("r1", 0),
      },
    ]);
  });

  it(`has the undo on the ledger before it runs ${verifies("core.step-state.compensating-record-first")}`, async () => {
    const b = await bench(["db.create"]);
    let seen: string[] = [];
    const compensator = async (): Promise<void> => {
      seen = await b.undoTrail();
    };
    await b.rollback({ compensator });
    expect(seen).toEqual(["compensating 0"]);
  });

  it(`reports what it cannot undo, and undoes the rest ${verifies("core.rollback.irreversible-reported", "core.rollback.unknown-not-guessed", "core.rollback.deferred-reported", "core.rollback.independents-go-on", "core.rollback.dependents-first-requires", "core.rollback.dependents-first-depends-on", "core.report.unrecoverable", "core.report.unresolved", "core.report.unmanifested", "core.report.deferred", "core.report.skipped", "core.purpose.rollback-honest")}`, async () => {
    const b = await bench([], "observe");
    await b.act("db.create");
    await b.act("mail.about");
    await b.act("db.create", { result: {} });
    await b.act("db.touch");
    await b.act("db.create", { status: "uncertain" });
    await b.act("db.create", { status: "intended" });
    await b.act("nobody.knows");
    await b.act("db.create");
    await b.act("mail.send", { depends_on: [7] });
    await b.act("crm.note", { result: {} });
    await b.act("db.create", { status: "failed" });
    await b.act("db.create");
    expect(await b.rollback()).toEqual({
      ...EMPTY,
      compensated: [11],
      skipped: [3],
      unrecoverable: [9, 8, 2, 1],
      unresolved: [5, 4],
      unmanifested: [6],
      deferred: [
        { step: 7, blocked_by: [8] },
        { step: 0, blocked_by: [1] },
      ],
      complete: false,
    });
    expect(b.world.order).toEqual([11]);
  });

  it(`retries with the same key, waits longer each time, and records the count ${verifies("core.rollback.retries-backoff", "core.rollback.retries-same-key", "core.plan.key-is-stable", "contract.readings.retries-total", "core.step-state.compensation-failed", "core.report.failed")}`, async () => {
    const b = await bench(["db.create", "db.create"]);
    b.world.fails = ({ step }, nth) => (step === 1 || nth < 3 ? "the database is away" : undefined);
    const report = await b.rollback({ retries: 4, backoff_ms: 1_000 });
    expect(report).toEqual({
      ...EMPTY,
      compensated: [0],
      failed: [{ step: 1, error: "after 4 attempts: the database is away" }],
      complete: false,
    });
    expect(b.world.order).toEqual([1, 1, 1, 1, 0, 0, 0]);
    expect(new Set(b.world.calls.map((call) => call.idempotency_key)).size).toBe(2);
    expect(b.waits).toHaveLength(5);
    for (const [i, full] of [1_000, 2_000, 4_000, 1_000, 2_000].entries()) {
      expect(b.waits[i]).toBeGreaterThanOrEqual(full / 2);
      expect(b.waits[i]).toBeLessThanOrEqual(full);
    }
    expect(new Set(b.waits.map((ms) => ms % 500)).size).toBeGreaterThan(1);
    expect(await b.step(1)).toMatchObject({
      status: "compensation_failed",
      error: "after 4 attempts: the database is away",
    });
    expect((await b.run()).compensation_failed).toBe(1);
    expect((await b.trail()).findLast(({ event }) => event === "compensated")).toMatchObject({
      detail: "after 3 attempts",
    });
  });

  it(`takes 1 to 10 attempts and nothing else ${verifies("core.limit.retries", "core.rollback.retries-range")}`, async () => {
    const b = await bench(["db.create"]);
    for (const retries of [0, 11, -1, 1.5, Number.NaN]) {
      await expect(b.rollback({ retries })).rejects.toThrow("retries: must be a whole number from 1 to 10");
    }
    b.world.fails = () => "no";
    await b.rollback({ retries: 10 });
    expect(b.world.calls).toHaveLength(10);
  });

  it("asks before every attempt whether the tool may be called, and stops trying when it may not", async () => {
    const b = await bench(["db.create", "db.create"]);
    b.world.fails = () => "the database is away";
    const asked: string[] = [];
    const objection = async (tools: readonly string[]) => {
      asked.push(tools.join(" "));
      return asked.length === 1 || asked.length === 3 ? "not as things stand" : null;
    };
    expect(await b.rollback({ retries: 4, objection })).toMatchObject({
      failed: [
        { step: 1, error: "not as things stand" },
        { step: 0, error: "after 1 attempt: not as things stand" },
      ],
      complete: false,
    });
    expect(b.world.order).toEqual([0]);
    expect(new Set(asked).size).toBe(1);
  });

  it("defers the dependencies of a failed undo, and continues with the rest", async () => {
    const b = await bench(["db.create", "db.create", "db.fill"]);
    await b.act("db.create", { depends_on: [1] });
    b.world.fails = ({ step }) => (step === 2 ? "no" : undefined);
    expect(await b.rollback({ retries: 1 })).toMatchObject({
      compensated: [3],
      failed: [{ step: 2, error: "after 1 attempt: no" }],
      deferred: [
        { step: 1, blocked_by: [2] },
        { step: 0, blocked_by: [2] },
      ],
      complete: false,
    });
  });

  it(`run again skips undone steps and retries failed ones, with the same key ${verifies("core.rollback.rerun-skips-compensated", "core.rollback.rerun-retries-failed", "core.step-state.retry-same-key", "core.step-state.compensated-skipped")}`, async () => {
    const b = await bench(["db.create", "db.fill", "db.create"]);
    b.world.fails = ({ step }) => (step === 1 ? "no" : undefined);
    await b.rollback({ retries: 2 });
    const firstKey = b.world.calls.find(({ step }) => step === 1)?.idempotency_key;
    b.world.fails = () => undefined;
    b.world.calls.splice(0);
    expect(await b.rollback()).toEqual({ ...EMPTY, compensated: [1, 0], skipped: [2] });
    expect(b.world.order).toEqual([1, 0]);
    expect(b.world.calls[0]?.idempotency_key).toBe(firstKey);
    expect(await b.run()).toMatchObject({ compensation_failed: 0 });
    const records = (await b.trail()).length;
    expect(await b.rollback()).toEqual({ ...EMPTY, skipped: [2, 1, 0] });
    expect(await b.trail()).toHaveLength(records);
  });

  it(`works while halted ${verifies("core.halt-state.rollback-works")}`, async () => {
    const b = await bench(["db.create"]);
    await b.store.transact(haltUnit(b.core, "adam", { reason: "stop it all" }));
    b.kill.reason = "and this too";
    expect(await b.rollback()).toMatchObject({ compensated: [0], complete: true });
  });

  it("keeps credentials and argument values out of errors, and control characters", async () => {
    const b = await bench();
    await b.act("db.create", { args: { name: "ann@example.org" }, result: { id: "cus_12345" } });
    b.world.fails = () => "no cus_12345 for ann@example.org with hunter2\u001b[31m\u0007";
    const report = await b.rollback({ retries: 1 });
    expect(report.failed).toEqual([
      { step: 0, error: "after 1 attempt: no [argument] for [argument] with [secret] [31m" },
    ]);
    const lines = (await b.store.records({ limit: 100 })).join("\n");
    expect(lines).not.toMatch(/cus_12345|ann@example|hunter2/);
  });

  it("frees the logical call and the prerequisite of what it undid, and forgets its values", async () => {
    const b = await bench();
    await b.act("once.only", { args: { key: "k1" } });
    await b.act("db.create");
    await expect(b.act("once.only", { args: { key: "k1" } })).rejects.toThrow("idempotency");
    await b.rollback();
    expect(await b.store.get("payloads", "r1/1")).toBeUndefined();
    await expect(b.act("db.fill")).rejects.toThrow("prerequisite db.create");
    await expect(b.act("once.only", { args: { key: "k1" } })).resolves.toBe(2);
  });

  it("lets nothing new build on a step whose undo has begun, and again once it failed", async () => {
    const b = await bench(["db.create"]);
    let during: unknown;
    const compensator = async (): Promise<void> => {
      during = await b.act("db.fill").catch((error: Error) => error.message);
      throw new Error("no");
    };
    await b.rollback({ compensator, retries: 1 });
    expect(during).toContain("prerequisite db.create has not succeeded");
    await expect(b.act("db.fill")).resolves.toBe(1);
  });

  it("tells its progress, and is not disturbed by who watches", async () => {
    const b = await bench(["db.create", "mail.send"]);
    b.world.fails = (_, nth) => (nth === 1 ? "not yet" : undefined);
    const seen: RollbackProgress[] = [];
    const onProgress = (progress: RollbackProgress): void => {
      seen.push(progress);
      throw new Error("the terminal is gone");
    };
    await b.rollback({ onProgress });
    expect(seen).toEqual([
      { event: "end", step: 1, tool: "mail.send", outcome: { as: "unrecoverable" } },
      { event: "begin", step: 0, tool: "db.create", compensation_tool: "db.delete" },
      {
        event: "attempt_failed",
        step: 0,
        tool: "db.create",
        attempt: 1,
        error: "not yet",
        retry_in_ms: expect.any(Number),
      },
      { event: "end", step: 0, tool: "db.create", outcome: { as: "compensated" } },
    ]);
  });

  it(`undoes a step that an operator resolved with its result ${verifies("core.step-state.resolve-result-enables-undo")}`, async () => {
    const b = await bench();
    await b.act("db.create", { status: "uncertain" });
    await b.act("db.create", { status: "uncertain" });
    expect(await b.rollback()).toMatchObject({ unresolved: [1, 0] });
    const input = { status: "succeeded" as const, note: "seen in the log" };
    await b.store.transact(resolveUnit(b.core, "olga", "r1", 0, { ...input, result: { id: 9 } }));
    await b.store.transact(resolveUnit(b.core, "olga", "r1", 1, input));
    expect(await b.rollback()).toMatchObject({ compensated: [0], unrecoverable: [1] });
    expect(b.world.calls[0]?.args).toEqual({ id: 9, name: "n" });
  });

  it("refuses an unknown run", async () => {
    await expect((await bench()).rollback({}, "r9")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("the read-back of a rollback", () => {
  it(`that matches ends verified ${verifies("core.step-state.verified", "core.event.readback", "contract.readings.undo-order", "core.rollback.readback-arguments", "core.rollback.library-verifier")}`, async () => {
    const b = await bench(["crm.add"]);
    b.world.shows = (_, nth) => ({ deleted: nth > 2 });
    expect(await b.rollback({ reader: b.world.reader })).toEqual({ ...EMPTY, compensated: [0] });
    expect(await b.undoTrail()).toEqual(["compensating 0", "verified 0", "compensated 0"]);
    expect(b.world.reads).toEqual([1, 2, 3].map(() => ({ tool: "crm.get", arguments: { id: "id-0" } })));
    expect(b.waits).toEqual([100, 200]);
  });

  it(`that never matches ends as failed, with the place and no value ${verifies("core.step-state.verification-failed", "core.step-state.first-mismatch", "core.error.text-verification-failed", "core.report.failed-verification")}`, async () => {
    const b = await bench(["crm.add"]);
    b.world.shows = () => ({ deleted: "value-of-somebody" });
    const error = "verification failed: crm.get did not show the expected state after the undo";
    expect(await b.rollback({ reader: b.world.reader })).toEqual({
      ...EMPTY,
      failed: [{ step: 0, error }],
      complete: false,
    });
    expect(b.world.reads).toHaveLength(3);
    expect(b.world.calls).toHaveLength(1);
    expect(await b.undoTrail()).toEqual(["compensating 0", "verification_failed 0", "compensation_failed 0"]);
    const trail = await b.trail();
    expect(trail.at(-2)?.detail).toBe("first mismatch: deleted is a string, not a boolean");
    expect(trail.at(-1)?.detail).toBe(error);
    expect(JSON.stringify(trail)).not.toContain("value-of-somebody");
  });

  it(`whose reads all fail counts as never matching ${verifies("contract.readings.failed-read")}`, async () => {
    const b = await bench(["crm.add"]);
    b.world.shows = () => new Error("away");
    expect((await b.rollback({ reader: b.world.reader })).failed).toHaveLength(1);
    expect((await b.trail()).at(-2)?.detail).toBe("first mismatch: the read failed");
  });

  it(`without its arguments ends as failed ${verifies("core.step-state.verification-arguments", "core.error.text-cannot-verify")}`, async () => {
    const b = await bench(["crm.note"]);
    expect((await b.rollback({ reader: b.world.reader })).failed).toEqual([
      { step: 0, error: "cannot verify: arguments unavailable" },
    ]);
    expect(await b.undoTrail()).toEqual(["compensating 0", "verification_failed 0", "compensation_failed 0"]);
    expect((await b.trail()).at(-2)?.detail).toContain("arguments unavailable");
    expect(b.world.reads).toEqual([]);
  });

  it(`that nobody can make ends unverified, and only where one is declared ${verifies("core.step-state.unverified", "core.step-state.unverified-not-complete", "contract.readings.unverified-only-declared", "contract.readings.no-readback-compensated", "core.report.unverified")}`, async () => {
    const b = await bench(["crm.add", "db.create"]);
    expect(await b.rollback()).toEqual({ ...EMPTY, compensated: [1, 0], unverified: [0], complete: false });
    expect(await b.undoTrail()).toEqual([
      "compensating 1",
      "compensated 1",
      "compensating 0",
      "unverified 0",
      "compensated 0",
    ]);
    expect(await b.step(0)).toMatchObject({ status: "compensated", unverified: true });
  });

  it(`is not made by the verify check, which fails the compensation ${verifies("core.rollback.verify-cmd-separate")}`, async () => {
    const b = await bench(["crm.add", "db.create"]);
    const checked: number[] = [];
    const verify = async ({ step }: { step: number }): Promise<void> => {
      checked.push(step);
      if (step === 1) throw new Error("exited with code 1");
    };
    expect(await b.rollback({ verify })).toEqual({
      ...EMPTY,
      compensated: [0],
      unverified: [0],
      failed: [
        { step: 1, error: "after 1 attempt: the verify check did not confirm the undo: exited with code 1" },
      ],
      complete: false,
    });
    expect(checked).toEqual([1, 0]);
    expect(b.world.order).toEqual([1, 0]);
  });

  it("is not reached by an undo that failed", async () => {
    const b = await bench(["crm.add"]);
    b.world.fails = () => "no";
    await b.rollback({
      reader: b.world.reader,
      verify: () => Promise.reject(new Error("never")),
      retries: 1,
    });
    expect(b.world.reads).toEqual([]);
    expect(await b.undoTrail()).toEqual(["compensating 0", "compensation_failed 0"]);
  });
});

describe("a rollback that is stopped", () => {
  it("stops between steps and continues when run again", async () => {
    const b = await bench(["db.create", "db.create", "db.create"]);
    const stop = new AbortController();
    b.world.fails = ({ step }) => {
      if (step === 1) stop.abort();
      return undefined;
    };
    const stopped = await b.rollback({ stop: stop.signal }).catch((error: unknown) => error);
    expect(stopped).toBeInstanceOf(RollbackInterrupted);
    expect((stopped as RollbackInterrupted).report.compensated).toEqual([2, 1]);
    expect(await b.store.list("leases", { limit: 10 })).toEqual([]);
    expect(await b.rollback()).toEqual({ ...EMPTY, compensated: [0], skipped: [2, 1] });
  });

  it("makes no further attempt, and leaves the step to be done again", async () => {
    const b = await bench(["db.create"]);
    const stop = new AbortController();
    b.world.fails = () => {
      stop.abort();
      return "no";
    };
    await expect(b.rollback({ stop: stop.signal })).rejects.toBeInstanceOf(RollbackInterrupted);
    expect(b.world.calls).toHaveLength(1);
    expect((await b.step(0)).status).toBe("compensating");
    b.world.fails = () => undefined;
    expect(await b.rollback()).toMatchObject({ compensated: [0], complete: true });
    expect(await b.undoTrail()).toEqual(["compensating 0", "compensating 0", "compensated 0"]);
  });

  it("gives up at once on abort, even with a compensator that never ends", async () => {
    const b = await bench(["db.create"]);
    const abort = new AbortController();
    const compensator = (): Promise<void> => {
      queueMicrotask(() => abort.abort());
      return new Promise(() => {});
    };
    await expect(b.rollback({ compensator, signal: abort.signal })).rejects.toBeInstanceOf(
      RollbackInterrupted,
    );
    expect((await b.step(0)).status).toBe("compensating");
    expect(await b.rollback()).toMatchObject({ compensated: [0], complete: true });
  });
});

describe("a rollback under an agent that continues", () => {
  it("also undoes calls that came since, and never from under a new dependent", async () => {
    const b = await bench(["db.create", "db.create"]);
    let added = false;
    b.world.fails = () => {
      if (added) return undefined;
      added = true;
      return "later";
    };
    const compensator = async (call: Parameters<typeof b.world.compensator>[0]): Promise<void> => {
      if (!added) {
        await b.act("db.fill");
        await b.act("db.create");
      }
      await b.world.compensator(call);
    };
    expect(await b.rollback({ compensator })).toEqual({ ...EMPTY, compensated: [3, 2, 1, 0] });
    // Step 1 was begun before step 2 came; step 0 had to wait for it.
    expect(b.world.order).toEqual([1, 1, 3, 2, 0]);
  });

  it("holds back what a new irreversible step depends on", async () => {
    const b = await bench(["db.create", "db.create"]);
    let added = false;
    const compensator = async (call: Parameters<typeof b.world.compensator>[0]): Promise<void> => {
      if (!added) await b.act("mail.about");
      added = true;
      await b.world.compensator(call);
    };
    const report = await b.rollback({ compensator });
    expect(report).toMatchObject({
      compensated: [1],
      unrecoverable: [2],
      deferred: [{ step: 0, blocked_by: [2] }],
    });
  });

  it("gives up where new steps come faster than it can look", async () => {
    const b = await bench(["db.create"]);
    const { store } = b;
    const get = store.get.bind(store);
    store.get = async (table, key) => {
      if (table === "payloads") await b.act("mail.about");
      return get(table, key);
    };
    await expect(b.rollback()).rejects.toThrow("run r1 keeps taking new steps");
    expect(b.world.calls).toEqual([]);
  });
});
