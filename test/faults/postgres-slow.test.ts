/**
 * A PostgreSQL that takes its time over every COMMIT, up to more than anybody waits. Whoever is refused is either
 * not on the ledger, now or later, or was told that he may be found there.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { PgProxy } from "../contract/pg-proxy.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { countTrials } from "../support/trials.ts";

const POLICY = "version: 1\nrules: [{id: mail, match: {tool: mail.send}, action: require_approval}]\n";
const MAY_BE_FOUND = /may be found there: look at the run .* same Idempotency-Key/;

let database: FreshDatabase;
let proxy: PgProxy;
let server: TestServer;
beforeAll(async () => {
  database = await freshDatabase();
  proxy = await PgProxy.start(database.url);
  server = await testServer({ store: await openPostgresStore(proxy.url, () => {}), policy: POLICY });
});
afterAll(async () => {
  proxy.stop();
  await database.drop();
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const post = (run: string, tool: string, who = "agent") =>
  server.call(who, "POST", `/v1/runs/${run}/intents`, { tool, args: { id: 1 }, reason: "r" });

async function open(run_id: string): Promise<void> {
  const run = { run_id, permissions: ["crm.read", "mail.send"] };
  expect(await server.call("agent", "POST", "/v1/runs", run)).toMatchObject({ status: 201 });
}

/** Until no COMMIT is on its way any more, and the server has ended what came of the last one. */
async function quick(): Promise<void> {
  proxy.slow_ms = 0;
  while (proxy.late > 0) await pause(20);
  while ((await server.call(null, "GET", "/readyz")).status !== 200) await pause(50);
}

async function stepsOf(run: string): Promise<unknown[]> {
  const answer = await server.call("auditor", "GET", `/v1/runs/${run}`);
  expect(answer.status).toBe(200);
  return answer.body.steps;
}

/** Each run was asked for one call. */
async function expectTrue(answers: ReadonlyMap<string, Answer>): Promise<void> {
  for (const [run, { status, body }] of answers) {
    const steps = await stepsOf(run);
    if (status === 200) expect(steps, run).toHaveLength(1);
    else {
      expect(status, run).toBe(503);
      if (!MAY_BE_FOUND.test(body.error)) expect([run, body.error, steps]).toEqual([run, body.error, []]);
    }
  }
}

describe("a COMMIT that takes", () => {
  it.each([2_900, 6_000])("%i ms leaves nothing behind of which nobody was told", async (slow_ms) => {
    const runs = Array.from({ length: 8 }, (_, i) => `slow-${slow_ms}-${i}`);
    for (const run of runs) await open(run);
    proxy.slow_ms = slow_ms;
    const answers = new Map<string, Answer>();
    const asked: Promise<void>[] = [];
    // Some wait for the batch before theirs, and have less time left than it took.
    for (const run of runs) {
      asked.push(post(run, "crm.get").then((answer) => void answers.set(run, answer)));
      await pause(400);
    }
    await Promise.all(asked);
    await quick();
    expect([...answers.values()].some(({ status }) => status === 503)).toBe(true);
    await expectTrue(answers);
    countTrials("postgres", "COMMIT slower than its callers wait", runs.length);
  });

  it("too long uses no approval up without saying so", async () => {
    const runs = ["approved-0", "approved-1", "approved-2"];
    for (const run of runs) {
      await open(run);
      const [id] = /apr_[\w-]+/.exec((await post(run, "mail.send")).text) ?? [];
      const path = `/v1/approvals/${id}/approve`;
      expect(await server.call("approver", "POST", path, {})).toMatchObject({ status: 200 });
    }
    proxy.slow_ms = 2_900;
    const asked = runs.map(async (run, i) => {
      await pause(i * 400);
      return [run, await post(run, "mail.send")] as const;
    });
    const answers = new Map(await Promise.all(asked));
    await quick();
    await expectTrue(answers);
    for (const [run, { status, body }] of answers) {
      if (status === 200 || MAY_BE_FOUND.test(body.error)) continue;
      expect(await post(run, "mail.send")).toMatchObject({ status: 200, body: { decision: "allow" } });
    }
    countTrials("postgres", "approval under a COMMIT slower than its caller waits", runs.length);
  });
});
