/**
 * A PostgreSQL that takes longer over every COMMIT than callers wait. A refused request is either never on the
 * ledger, or its answer said that it may have been recorded.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { postgresSql } from "../contract/sql.ts";
import { freshDatabase, type PgServer, startPostgres } from "../support/postgres.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { countTrials } from "../support/trials.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = "version: 1\nrules: [{id: mail, match: {tool: mail.send}, action: require_approval}]\n";
const MAY_BE_FOUND = /may have been recorded. Check the run .* same Idempotency-Key/;

let postgres: PgServer;
let url: string;
let server: TestServer;
beforeAll(async () => {
  postgres = await startPostgres();
  ({ url } = await freshDatabase(postgres));
  server = await testServer({ store: await openPostgresStore(url, () => {}), policy: POLICY });
  await sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
  await sql(`CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON svc_head DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION slow()`);
});
afterAll(() => postgres.dispose());

const sql = (text: string) => postgresSql(url).run(text);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const post = (run: string, tool: string, headers = {}) =>
  server.call("agent", "POST", `/v1/runs/${run}/intents`, { tool, args: { id: 1 }, reason: "r" }, headers);

async function open(run_id: string): Promise<void> {
  const run = { run_id, permissions: ["crm.read", "mail.send"] };
  expect(await server.call("agent", "POST", "/v1/runs", run)).toMatchObject({ status: 201 });
}

/** From now on every COMMIT of a batch takes so long, whether or not anybody still waits for it. */
async function commitsTake(ms: number): Promise<void> {
  await sql(`CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(${ms / 1_000}); RETURN NULL; END'`);
}

/** Until the database has ended everything that was ever sent to it. */
async function quiet(): Promise<void> {
  const busy = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`;
  while ((await sql(busy)).length > 0) await pause(20);
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
  it.each([2_900, 6_000])("%i ms leaves nothing behind without an answer", async (slow_ms) => {
    const runs = Array.from({ length: 8 }, (_, i) => `slow-${slow_ms}-${i}`);
    for (const run of runs) await open(run);
    await commitsTake(slow_ms);
    const answers = new Map<string, Answer>();
    const asked: Promise<void>[] = [];
    // Some wait for the batch before theirs, and have less time left than it took.
    for (const run of runs) {
      asked.push(post(run, "crm.get").then((answer) => void answers.set(run, answer)));
      await pause(400);
    }
    await Promise.all(asked);
    await commitsTake(0);
    await quiet();
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
    await commitsTake(2_900);
    const asked = runs.map(async (run, i) => {
      await pause(i * 400);
      return [run, await post(run, "mail.send")] as const;
    });
    const answers = new Map(await Promise.all(asked));
    await commitsTake(0);
    await quiet();
    await expectTrue(answers);
    for (const [run, { status, body }] of answers) {
      if (status === 200 || MAY_BE_FOUND.test(body.error)) continue;
      expect(await post(run, "mail.send")).toMatchObject({ status: 200, body: { decision: "allow" } });
    }
    countTrials("postgres", "approval under a COMMIT slower than its caller waits", runs.length);
  });

  const standby = async (names: string): Promise<void> => {
    await sql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await sql("SELECT pg_reload_conf()");
  };

  it.each([
    // The wait is ended; everybody can see the record, and it is still only here.
    ["the wait is cancelled", "pg_cancel_backend", /not confirmed by the standby.*may have been recorded/],
    // The answer to COMMIT is lost as well, as in a crash. The record is found, and still only here.
    ["the connection ends", "pg_terminate_backend", /may have been recorded/],
  ])("until a standby is back answers nobody for what it does not have: %s", async (_, end, message) => {
    verifies("beyond.cluster.found");
    await open(end);
    await standby("nobody");
    const key = { "idempotency-key": end };
    try {
      const first = post(end, "crm.get", key);
      const waits = `SELECT ${end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
      while ((await sql(waits)).length === 0) await pause(20);
      expect(await first).toMatchObject({
        status: 503,
        body: { error: expect.stringMatching(message) },
      });
      while ((await stepsOf(end)).length === 0) await pause(50);
      for (let i = 0; i < 3; i++) {
        expect(await post(end, "crm.get", key)).toMatchObject({ status: 503 });
        expect(await server.call(null, "GET", "/readyz")).toMatchObject({ status: 503 });
      }
    } finally {
      await standby("");
    }
    await quiet();
    expect(await post(end, "crm.get", key)).toMatchObject({ status: 200, body: { step: 0 } });
    expect(await stepsOf(end)).toHaveLength(1);
    countTrials("postgres", "standby that does not confirm", 1);
  });
});
