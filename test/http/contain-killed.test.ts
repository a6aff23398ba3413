/** A containment that is killed at every point where it writes, before and after the write, and run again. */
import { expect, it } from "vitest";
import { watchLeases } from "../../src/govern/lease.ts";
import type { UnitOfWork } from "../../src/govern/port/store.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

/** Enough to be past the last write of the containment below. */
const POINTS = 20;
const MANIFESTS = `
- {tool: thing.make, effect: compensable, permission: p, compensation: {tool: thing.unmake, args: {id: $result.id}}}
- {tool: thing.pay, effect: compensable, permission: p, compensation: {tool: thing.unpay, args: {}}}
`;
const POLICY = "version: 1\nrules:\n  - {id: pay, match: {tool: thing.pay}, action: require_approval}\n";

/** A store whose process dies: from a given write on nothing is answered any more. */
class Dying extends MemoryStore {
  private left = Number.POSITIVE_INFINITY;
  private after = false;
  /** Nothing is answered any more; the last write may still be on its way to the disk. */
  private silent = false;
  private dead = false;
  /** Done by another process right before the next write. */
  meanwhile: (() => Promise<void>) | undefined;
  die(left: number, after: boolean): void {
    this.left = left;
    this.after = after;
  }
  revive(): boolean {
    const died = this.dead;
    this.left = Number.POSITIVE_INFINITY;
    this.silent = false;
    this.dead = false;
    return died;
  }
  override async transact<T>(unit: UnitOfWork<T>): Promise<T> {
    const { meanwhile } = this;
    this.meanwhile = undefined;
    await meanwhile?.();
    if (this.silent) throw gone();
    if (this.left-- > 0) return super.transact(unit);
    this.silent = true;
    if (this.after) await super.transact(unit);
    this.dead = true;
    throw gone();
  }
}
const gone = () => new SvcError("unavailable", "killed");

const names = Array.from({ length: POINTS }, (_, i) => [`before-${i}`, `after-${i}`]).flat();

async function scene(s: TestServer, bot: string): Promise<void> {
  for (const run_id of [`${bot}-a`, `${bot}-b`]) {
    await s.call(bot, "POST", "/v1/runs", { run_id, permissions: ["p"] });
    await s.call(bot, "POST", `/v1/runs/${run_id}/intents`, { tool: "thing.make", args: {}, reason: "r" });
    const result = { status: "succeeded", result: { id: 1 } };
    await s.call(bot, "POST", `/v1/runs/${run_id}/steps/0/outcome`, result);
  }
  await s.call(bot, "POST", `/v1/runs/${bot}-a/intents`, { tool: "thing.pay", args: {}, reason: "r" });
  const loan = { to: bot, expires_at: "2026-06-20T00:00:00Z", reason: "r" };
  expect((await s.call("approver", "POST", "/v1/delegations", loan)).status).toBe(201);
}

it("continues where it was, and does nothing twice", async () => {
  verifies("beyond.contain.again", "beyond.contain.order");
  const store = new Dying();
  const keys = names.map((name) => ({ name, role: "agent" }));
  const s = await testServer({ manifests: MANIFESTS, policy: POLICY, store, keys });
  const undone: string[] = [];
  s.app.jobTools = {
    compensator: async ({ run_id }) => void undone.push(run_id),
    stop: s.app.background.signal,
  };
  let survived = 0;
  for (const bot of names) {
    await scene(s, bot);
    const from = (await store.head()).records;
    const body = { actor: bot, reason: "it went mad", confirm: true };
    store.die(Number(bot.split("-")[1]), bot.startsWith("after"));
    const first = await s.call("admin", "POST", "/v1/contain", body);
    await until(async () => {
      const [running] = await store.list("containments", { tag: "running", limit: 1 });
      return store["dead"] || (first.status === 202 && running === undefined);
    }, "the end of the containment, one way or the other");
    if (!store.revive()) survived++;
    await watchLeases(s.app.core);
    await s.env.advance(SERVICE_LIMITS.lease_ms);
    const again = await s.call("admin", "POST", "/v1/contain", body);
    expect([bot, again.status]).toEqual([bot, 202]);
    const look = async () => (await s.call("auditor", "GET", `/v1/contain/${again.body.job.id}`)).body.job;
    await until(async () => (await look()).state !== "running", "the containment to end");
    const { state, report } = await look();
    expect([bot, state]).toEqual([bot, "done"]);
    expect(report).toMatchObject({
      keys: { disabled: [{ name: bot }] },
      requests: { denied: [expect.stringMatching(/^apr_/)] },
      revoked: { delegations: [expect.stringMatching(/^dlg_/)] },
      runs: [{ undone: [{ step: 0 }] }, { undone: [{ step: 0 }] }],
      complete: true,
    });
    const records = (await store.records({ from, limit: 1_000 })).map((line) => JSON.parse(line));
    const events: string[] = records.map(({ event }) => event);
    // An undo under way when its process died is begun again, on record; nothing else is there twice.
    const once = events.filter(
      (event, i) => event !== "compensating" || records[i].detail === "by thing.unmake",
    );
    expect([bot, once]).toEqual([
      bot,
      [
        ...["halted", "key_changed", "denied", "delegation_revoked"],
        ...["compensating", "compensated", "compensating", "compensated", "contained"],
      ],
    ]);
  }
  // The last points are past the end: then the first try alone was whole.
  expect(survived).toBeGreaterThan(0);
  expect(survived).toBeLessThan(names.length / 2);
});

it("gives the report of one that ends in the moment in which it is asked for again", async () => {
  verifies("beyond.contain.again");
  const store = new Dying();
  const s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    store,
    keys: [{ name: "bot", role: "agent" }],
  });
  s.app.jobTools = { compensator: async () => {}, stop: s.app.background.signal };
  await scene(s, "bot");
  const body = { actor: "bot", reason: "it went mad", confirm: true };
  const { id } = (await s.call("admin", "POST", "/v1/contain", body)).body.job;
  const look = async () => (await s.call("auditor", "GET", `/v1/contain/${id}`)).body.job;
  await until(async () => (await look()).state === "done", "the containment to end");
  // The state before its last write, which another process makes between the read and the unit.
  const done = (await store.get("containments", id))!;
  const put = (doc: typeof done) =>
    store.transact({ needs: [], run: (tx) => tx.put("containments", id, doc) });
  await put({ ...done, state: "running", finished_ms: null, report: null });
  const records = (await store.head()).records;
  store.meanwhile = () => put(done);
  const again = await s.call("admin", "POST", "/v1/contain", body);
  expect(again.body.job).toMatchObject({ id, state: "done" });
  expect((await store.head()).records).toBe(records);
});
