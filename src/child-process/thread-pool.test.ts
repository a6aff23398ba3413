import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { DutyJob } from "../../test/support/duty.ts";
import { tempDir } from "../../test/support/tmp.ts";
import { ThreadPool, type ThreadPoolOptions } from "./thread-pool.ts";

const entry = new URL("../../test/support/duty.ts", import.meta.url);
const opened: ThreadPool[] = [];

function open(options: Partial<ThreadPoolOptions> = {}) {
  const log = join(tempDir(), "log");
  const threads = new ThreadPool({ name: "the test", entry, setting: log, most: 1, ...options });
  opened.push(threads);
  const ask = (job: DutyJob, signal?: AbortSignal) =>
    threads.ask<string>(job, signal && { signal }).catch((error) => error.message);
  return { threads, ask, log };
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((threads) => threads.close()));
});

it("does jobs in their order; a thread that dies fails its own alone, and an error stays what it was", async () => {
  const { threads, ask } = open();
  const jobs = ["refuse", { echo: "a" }, "die", { echo: "b" }] as const;
  expect(await Promise.all(jobs.map((job) => ask(job)))).toEqual([
    "not now",
    "a",
    "a thread of the test ended without an answer",
    "b",
  ]);
  await expect(threads.ask("refuse")).rejects.toMatchObject({ name: "SvcError", code: "conflict" });
});

it("stops a job with its signal, in hand or waiting, and continues", async () => {
  const { threads, ask } = open();
  const [first, second] = [new AbortController(), new AbortController()];
  const begun = new Promise<void>((resolve) => {
    const asking = { signal: first.signal, begun: resolve };
    threads.ask("stand", asking).catch(() => {});
  });
  await begun;
  const waiting = ask({ echo: "a" }, second.signal);
  expect(threads.waiting).toBe(1);
  second.abort(new Error("left"));
  expect(await waiting).toBe("left");
  const next = ask({ echo: "b" });
  first.abort(new Error("late"));
  expect(await next).toBe("b");
  expect(await ask({ echo: "c" }, AbortSignal.abort(new Error("before")))).toBe("before");
});

it("lets a thread let go of what it holds where it needs to, and is closed then", async () => {
  const { threads, ask, log } = open({ patience_ms: 60_000 });
  expect(await ask({ echo: "a" })).toBe("a");
  await threads.close();
  expect(readFileSync(log, "utf8")).toBe("ended\n");
  expect(await ask({ echo: "b" })).toBe("the test is closed");
});

it("does not wait for a thread that has not let go in time, and ends one that may be stopped", async () => {
  const patient = open({ patience_ms: 1 });
  const hasty = open();
  const stuck = [patient.ask("stand"), hasty.ask("stand")];
  await Promise.all([patient.threads.close(), hasty.threads.close()]);
  expect(await Promise.all(stuck)).toEqual([
    "the test is closed",
    "a thread of the test ended without an answer",
  ]);
  expect([patient, hasty].map(({ log }) => existsSync(log))).toEqual([false, false]);
});
