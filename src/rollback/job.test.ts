import { describe, expect, it } from "vitest";
import { rollbackBench } from "../../test/sim/rollback-fixture.ts";
import { otherProcess } from "../../test/support/process.ts";
import { verifies } from "../../test/support/verifies.ts";
import { SvcError } from "../kernel/errors.ts";
import { getJob, jobView, resumeJobs, startJob, watchJobs } from "./job.ts";

async function bench(tools: string[] = ["db.create", "crm.add", "db.create"]) {
  const b = rollbackBench();
  await b.openRun();
  for (const tool of tools) await b.act(tool);
  return {
    ...b,
    tools: { compensator: b.world.compensator, reader: null, backoff_ms: 10 },
    job: async () => jobView(await getJob(b.store, "r1")),
  };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A compensator that hangs on one step, as that of a process which is about to die. */
function hangsOn(b: Awaited<ReturnType<typeof bench>>, step: number) {
  return {
    ...b.tools,
    compensator: (call: Parameters<typeof b.world.compensator>[0]) =>
      call.step === step ? new Promise<void>(() => {}) : b.world.compensator(call),
  };
}

describe("a rollback job", () => {
  it(`tells its progress and keeps its report ${verifies("contract.http.rollback-get")}`, async () => {
    const b = await bench();
    let during: unknown;
    const compensator = async (call: Parameters<typeof b.world.compensator>[0]): Promise<void> => {
      if (call.step === 1) during = await b.job();
      await b.world.compensator(call);
    };
    const started = await startJob(b.core, "r1", { by: "olga" }, { ...b.tools, compensator });
    expect(started.job).toMatchObject({
      run_id: "r1",
      state: "running",
      by: "olga",
      started_ms: b.env.now(),
    });
    const done = await started.done;
    expect(during).toEqual({
      run_id: "r1",
      state: "running",
      by: "olga",
      current_step: 1,
      started_ms: expect.any(Number),
      finished_ms: null,
      report: null,
      error: null,
    });
    expect(await b.job()).toEqual(jobView(done!));
    expect(await b.job()).toMatchObject({
      state: "done",
      finished_ms: expect.any(Number),
      current_step: null,
      report: { compensated: [2, 1, 0], unverified: [1], complete: false },
    });
    expect((await b.trail()).at(-1)?.actor).toBe("olga");
  });

  it(`is one at a time, and there may be another later ${verifies("contract.http.rollback-409", "contract.http.rollback-get-404")}`, async () => {
    const b = await bench();
    await expect(b.job()).rejects.toMatchObject({ code: "not_found" });
    const first = await startJob(b.core, "r1", { by: "olga" }, b.tools);
    await expect(startJob(b.core, "r1", { by: "pete" }, b.tools)).rejects.toMatchObject({ code: "conflict" });
    await expect(b.rollback()).rejects.toMatchObject({ code: "conflict" });
    await first.done;
    await (await startJob(b.core, "r1", { by: "pete" }, b.tools)).done;
    expect(await b.job()).toMatchObject({
      by: "pete",
      state: "done",
      report: { compensated: [], skipped: [2, 1, 0], complete: true },
    });
    await expect(startJob(b.core, "r1", { by: "olga", retries: 11 }, b.tools)).rejects.toMatchObject({
      code: "invalid",
    });
    await expect(startJob(b.core, "r9", { by: "olga" }, b.tools)).rejects.toMatchObject({
      code: "not_found",
    });
  });

  it("survives its process: another carries it on, and the report tells the whole job", async () => {
    const b = await bench();
    await startJob(b.core, "r1", { by: "olga", retries: 2 }, hangsOn(b, 0));
    while ((await b.job()).current_step !== 0) await turn();
    const other = otherProcess(b.core);
    expect(await resumeJobs(other, b.tools)).toEqual([]);
    await other.outwait();
    const [resumed, ...others] = await resumeJobs(other, b.tools);
    expect(others).toEqual([]);
    await resumed?.done;
    // Step 1 ended unverified in the first process; the second one still reports it.
    expect(await b.job()).toMatchObject({
      state: "done",
      by: "olga",
      report: { compensated: [2, 1, 0], skipped: [], unverified: [1], complete: false },
    });
    expect(await b.undoTrail()).toEqual([
      "compensating 2",
      "compensated 2",
      "compensating 1",
      "unverified 1",
      "compensated 1",
      "compensating 0",
      "compensating 0",
      "compensated 0",
    ]);
    expect(await resumeJobs(b.core, b.tools)).toEqual([]);
  });

  it("stopped lets go at once, for the next process to resume", async () => {
    const b = await bench();
    const stop = new AbortController();
    b.world.fails = () => {
      stop.abort();
      return undefined;
    };
    const { done } = await startJob(b.core, "r1", { by: "olga" }, { ...b.tools, stop: stop.signal });
    expect(await done).toBeNull();
    expect(await b.job()).toMatchObject({ state: "running" });
    const [resumed] = await resumeJobs(b.core, b.tools);
    expect(await resumed?.done).toMatchObject({ state: "done", report: { compensated: [2, 1, 0] } });
  });

  it("is left alone while the store is away, and resumes afterwards", async () => {
    const b = await bench();
    const transact = b.store.transact.bind(b.store);
    let writes = 0;
    let away = true;
    b.store.transact = (unit) => {
      if (++writes >= 3 && away) return Promise.reject(new SvcError("unavailable", "ledger unavailable"));
      return transact(unit);
    };
    const { done } = await startJob(b.core, "r1", { by: "olga" }, b.tools);
    expect(await done).toBeNull();
    away = false;
    expect(await b.job()).toMatchObject({ state: "running", current_step: 2 });
    const other = otherProcess(b.core);
    await other.outwait();
    const [resumed] = await resumeJobs(other, b.tools);
    expect(await resumed?.done).toMatchObject({ state: "done", report: { compensated: [2, 1, 0] } });
    expect(b.world.order).toEqual([2, 2, 1, 0]);
  });

  it("that cannot continue ends as failed and explains why", async () => {
    const b = await bench();
    const compensator = async (): Promise<void> => {
      const run = await b.run();
      await b.store.transact({
        run: (tx) => tx.put("runs", "r1", { ...run, scope: { ...run.scope, permissions: ["all"] } }),
      });
    };
    const { done } = await startJob(b.core, "r1", { by: "olga" }, { ...b.tools, compensator });
    expect(await done).toMatchObject({
      state: "failed",
      report: null,
      error: expect.stringContaining("scope seal mismatch"),
    });
    expect(await b.store.list("leases", { limit: 9 })).toEqual([]);
  });

  it("is found by the watch of another process", async () => {
    const b = await bench();
    await startJob(b.core, "r1", { by: "olga" }, hangsOn(b, 1));
    while ((await b.job()).current_step !== 1) await turn();
    const other = otherProcess(b.core);
    await other.outwait();
    const stop = new AbortController();
    const watch = watchJobs(other, b.tools, stop.signal);
    while ((await b.job()).state === "running") await turn();
    stop.abort();
    await watch;
    expect(await b.job()).toMatchObject({ state: "done", report: { compensated: [2, 1, 0] } });
  });
});
