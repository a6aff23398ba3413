/**
 * A separate server whose disk syncs slowly, fails to sync, or stops at the worst moment, used over HTTP. No answer
 * depends on bytes that a power cut could take. A refused request leaves nothing, or its answer said that it may
 * have been recorded.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ServerProcess } from "../support/cli.ts";
import { ROOT } from "../support/files.ts";
import { countTrials } from "../support/trials.ts";
import { call, type Place, placeOn, type Reply, start } from "./place.ts";

const STORES = ["files", "sqlite"] as const;
const READ = { tool: "crm.get", args: { id: 1 }, reason: "look it up" };
const PAY = { tool: "pay", args: { n: 1 }, reason: "pay it" };
const WAIT = { timeout: 30_000, interval: 20 };
const aWhile = (ms = 300) => new Promise((resolve) => setTimeout(resolve, ms));

/** A place with a controlled disk, and servers on it. */
class Bench {
  readonly place: Place;
  private readonly store: (typeof STORES)[number];
  private readonly hooks: string;

  private constructor(store: (typeof STORES)[number], place: Place) {
    this.store = store;
    this.place = place;
    this.hooks = join(place.folder, "hooks");
    mkdirSync(this.hooks);
  }

  static async on(store: (typeof STORES)[number]): Promise<Bench> {
    return new Bench(store, await placeOn(store));
  }

  async serve(): Promise<ServerProcess> {
    const server = await start(this.place, {
      NODE_OPTIONS: `--import=${join(ROOT, "test", "support", "disk-hooks.mjs")}`,
      SVC_TEST_DISK_HOOKS: this.hooks,
    });
    onTestFinished(async () => {
      process.kill(server.pid, "SIGCONT");
      await server.stop("SIGKILL");
    });
    return server;
  }

  tell(hook: string, text = ""): void {
    writeFileSync(join(this.hooks, hook), text);
  }

  release(hook: string): void {
    rmSync(join(this.hooks, hook), { force: true });
  }

  /** Resolves when the process has reached the stop that the test ordered. */
  async taken(hook: string): Promise<void> {
    await vi.waitFor(() => expect(existsSync(join(this.hooks, hook))).toBe(false), WAIT);
  }

  /** When the medium holds so many records, durable or not. */
  async written(count: number): Promise<void> {
    await vi.waitFor(() => expect(this.records()).toBe(count), WAIT);
  }

  private records(): number {
    const data = join(this.place.folder, "data");
    if (this.store === "files")
      return readFileSync(join(data, "ledger.jsonl"), "utf8").split("\n").length - 1;
    const database = new DatabaseSync(join(data, "svc.db"), { readOnly: true });
    try {
      return Number(database.prepare("SELECT count(*) AS n FROM ledger").get()!["n"]);
    } finally {
      database.close();
    }
  }
}

/** A run with a payment that waits for a person; answers the request's id. */
async function waitingRun(url: string): Promise<string> {
  await call(url, "POST", "runs", { run_id: "r", permissions: ["crm.read", "pay"] });
  expect((await pay(url)).body.decision).toBe("block");
  return (await call(url, "GET", "approvals", undefined, { as: "approver" })).body.approvals[0].id;
}

/** The same, approved. */
async function approvedRun(url: string): Promise<string> {
  const id = await waitingRun(url);
  const approved = await call(url, "POST", `approvals/${id}/approve`, {}, { as: "approver" });
  expect(approved).toMatchObject({ status: 200, body: { status: "approved" } });
  return id;
}

const pay = (url: string, key?: string): Promise<Reply> =>
  call(url, "POST", "runs/r/intents", PAY, key === undefined ? {} : { key });
const stepsOf = async (url: string): Promise<number[]> =>
  (await call(url, "GET", "runs/r")).body.steps.map(({ step }: { step: number }) => step);
const statusOf = async (url: string, id: string): Promise<string> =>
  (await call(url, "GET", `approvals/${id}`)).body.status;

/** Every kind of read, and what it shows of an intent and an approval once they are durable. */
const shown = (id: string): Record<string, string> => ({
  "runs/r": READ.reason,
  status: '"records":3',
  "search/records": READ.reason,
  "search/runs?tool=crm.get": '"run_id":"r"',
  "runs/r/export": READ.reason,
  "runs/r/plan": "crm.get",
  "runs/r/report": READ.reason,
  [`approvals/${id}?wait=20`]: '"status":"approved"',
  "approvals?status=approved": id,
});

const refusedPlainly = (reply: Reply): void => {
  expect(reply.status, reply.text).toBe(503);
  expect(reply.text).not.toContain("may have been recorded");
};
const refusedUnknown = (reply: Reply): void => {
  expect(reply.status, reply.text).toBe(503);
  expect(reply.text).toMatch(/may have been recorded. Check the run .* same Idempotency-Key/);
};

describe.each(STORES)("a server on %s", (store) => {
  it("whose syncs take long tells nobody of anything before it is durable", async () => {
    const bench = await Bench.on(store);
    const [server, other] = [await bench.serve(), await bench.serve()];
    const id = await waitingRun(server.url);
    bench.tell("hold-sync");
    const answered: string[] = [];
    const ask = (name: string, asking: Promise<Reply>): Promise<Reply> =>
      asking.finally(() => answered.push(name));
    const key = "k-1";
    const intent = (url: string, args: object) =>
      call(url, "POST", "runs/r/intents", { ...READ, args }, { key });
    const approve = call(server.url, "POST", `approvals/${id}/approve`, {}, { as: "approver" });
    const approving = ask("approve", approve);
    await bench.written(2);
    const first = ask("first", intent(server.url, { id: 1 }));
    await bench.written(3);
    const repeats = [server, server, other].map(({ url }, i) => ask(`repeat ${i}`, intent(url, { id: 1 })));
    const conflict = ask("conflict", intent(server.url, { id: 2 }));
    const reads = [server, other].flatMap(({ url }) =>
      Object.entries(shown(id)).map(([path, what]) =>
        ask(path, call(url, "GET", path, undefined, { as: "admin" })).then((reply) => ({ what, reply })),
      ),
    );
    await aWhile();
    expect(answered).toEqual([]);
    bench.release("hold-sync");

    const told = await first;
    expect(told).toMatchObject({ status: 200, body: { decision: "allow", step: 0 } });
    for (const repeat of await Promise.all(repeats)) expect(repeat).toEqual(told);
    expect((await conflict).status).toBe(409);
    expect((await approving).body.status).toBe("approved");
    for (const { what, reply } of await Promise.all(reads)) {
      expect(reply.status, reply.text).toBe(200);
      expect(reply.text).toContain(what);
    }
    countTrials(store, "slow sync: repeated keys, conflicts and reads", answered.length);
  });

  it("whose sync takes longer than anybody waits says that it may be found, and refuses plainly what it has not begun", async () => {
    const bench = await Bench.on(store);
    const server = await bench.serve();
    const id = await approvedRun(server.url);
    bench.tell("hold-sync");
    const paying = pay(server.url, "k-1");
    await bench.written(4);
    const behind = call(server.url, "POST", "runs/r/intents", READ);
    await bench.written(5);
    const reading = call(server.url, "GET", "runs/r");
    refusedUnknown(await paying);
    refusedUnknown(await behind);
    refusedPlainly(await reading);
    refusedPlainly(await call(server.url, "POST", "runs/r/intents", READ));
    bench.release("hold-sync");

    const again = await vi.waitFor(async () => {
      const reply = await pay(server.url, "k-1");
      expect(reply.status).toBe(200);
      return reply;
    }, WAIT);
    expect(again.body).toMatchObject({ decision: "allow", step: 0 });
    expect(await stepsOf(server.url)).toEqual([0, 1]);
    expect(await statusOf(server.url, id)).toBe("consumed");
    countTrials(store, "sync past the deadline", 3);
  });

  it("that is stopped while it holds the lock carries out nothing that it refuses, and uses up no approval", async () => {
    const bench = await Bench.on(store);
    const [server, other] = [await bench.serve(), await bench.serve()];
    const id = await approvedRun(server.url);
    bench.tell("stop-locked");
    const paying = pay(server.url);
    await bench.taken("stop-locked");
    // Each of these waits for the lock until its own time is over: nobody waits for the payment any more.
    for (let i = 0; i < 2; i++) refusedPlainly(await call(other.url, "POST", "runs/r/intents", READ));
    process.kill(server.pid, "SIGCONT");
    refusedPlainly(await paying);
    for (const { url } of [server, other]) {
      expect(await stepsOf(url)).toEqual([]);
      expect(await statusOf(url, id)).toBe("approved");
    }
    expect(await pay(other.url)).toMatchObject({ status: 200, body: { decision: "allow", step: 0 } });
    countTrials(store, "stopped while it holds the lock", 1);
  });

  it("that is stopped when it has written says that it may be found", async () => {
    const bench = await Bench.on(store);
    const [server, other] = [await bench.serve(), await bench.serve()];
    const id = await approvedRun(server.url);
    bench.tell("stop-writing");
    const paying = pay(server.url, "k-1");
    await bench.taken("stop-writing");
    // Others continue in the meantime, and make it durable themselves before they show it.
    expect(await stepsOf(other.url)).toEqual([0]);
    await aWhile(6_000);
    process.kill(server.pid, "SIGCONT");
    const reply = await paying;
    if (reply.status !== 200) refusedUnknown(reply);
    expect((await pay(other.url, "k-1")).body).toMatchObject({ decision: "allow", step: 0 });
    expect(await statusOf(other.url, id)).toBe("consumed");
    expect(await stepsOf(server.url)).toEqual([0]);
    countTrials(store, "stopped when it has written", 1);
  });

  it("whose syncs fail tells what it could make good, and what it could not", async () => {
    const bench = await Bench.on(store);
    const server = await bench.serve();
    await approvedRun(server.url);
    bench.tell("fail-sync", "once");
    expect(await call(server.url, "POST", "runs/r/intents", READ)).toMatchObject({ status: 200 });
    expect(await stepsOf(server.url)).toEqual([0]);
    bench.tell("fail-sync");
    refusedUnknown(await pay(server.url, "k-1"));
    refusedPlainly(await call(server.url, "POST", "runs/r/intents", READ));
    refusedPlainly(await call(server.url, "GET", "runs/r"));
    expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
    bench.release("fail-sync");
    expect((await pay(server.url, "k-1")).body).toMatchObject({ decision: "allow", step: 1 });
    expect(await stepsOf(server.url)).toEqual([0, 1]);
    countTrials(store, "sync that fails over HTTP", 2);
  });
});
