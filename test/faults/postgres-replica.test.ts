/** Reads on a real streaming replica: what looks may be behind, within its bound; what decides never is. */
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { freshDatabase, type PgServer, startPostgres } from "../support/postgres.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

let primary: PgServer;
let standby: PgServer;
let replica_url: string;
/** Both on one database: the first takes a replica however old, the second none that is behind for long. */
let patient: TestServer;
let strict: TestServer;

beforeAll(async () => {
  primary = await startPostgres();
  standby = await primary.standby();
  const { url, name } = await freshDatabase(primary);
  replica_url = standby.url(name);
  const open = async (max_lag_ms: number) =>
    testServer({ store: await openPostgresStore(url, () => {}, { url: replica_url, max_lag_ms }) });
  patient = await open(3_600_000);
  strict = await open(100);
});

afterAll(async () => {
  await standby.dispose();
  await primary.dispose();
});

async function openRun(run_id: string) {
  const opened = await patient.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
  expect(opened.status).toBe(201);
}

const intent = (run_id: string) =>
  patient.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool: "crm.get", args: {}, reason: "r" });

async function found(s: TestServer): Promise<string[]> {
  const { body } = await s.call("auditor", "GET", "/v1/search/runs?order=asc");
  return body.runs.map(({ run_id }: { run_id: string }) => run_id);
}

async function onStandby(sql: string) {
  const client = new pg.Client(replica_url);
  await client.connect();
  await client.query(sql);
  await client.end();
}

it("searches and reports read the replica, decisions the primary, and past max_lag everybody does", async () => {
  verifies("beyond.replica.reads", "beyond.replica.lag", "beyond.replica.shown", "beyond.replica.decides");
  await openRun("r1");
  await intent("r1");
  const replica = patient.app.core.store.replica!;
  await until(async () => (await replica.isFresh()) && (await found(patient)).includes("r1"), "the replica");

  await onStandby("SELECT pg_wal_replay_pause()");
  await openRun("r2");
  // What looks may be behind; what decides, or asks for one thing by its name, is not.
  expect(await found(patient)).toEqual(["r1"]);
  expect((await intent("r2")).body.decision).toBe("allow");
  expect((await patient.call("auditor", "GET", "/v1/runs/r2")).status).toBe(200);
  expect((await patient.call("auditor", "GET", "/v1/runs/r2/report")).status).toBe(200);
  const { body: records } = await patient.call("auditor", "GET", "/v1/search/records?run_id=r2");
  expect(records.records).toEqual([]);
  await patient.call("admin", "POST", "/v1/halt", { reason: "stop" });
  expect((await intent("r2")).body.decision).toBe("block");
  await until(async () => (await found(strict)).length === 2, "the primary to be asked");

  const { body: status } = await strict.call("auditor", "GET", "/v1/status");
  expect(status.replica).toEqual({ lag_ms: expect.any(Number), max_lag_ms: 100, in_use: false });
  const { body: ready } = await patient.call(null, "GET", "/readyz");
  expect(ready.replica).toMatchObject({ max_lag_ms: 3_600_000, in_use: true });
  const metrics = await strict.call("auditor", "GET", "/metrics");
  expect(metrics.text).toMatch(/^svc_replica_lag_seconds \d/m);

  await onStandby("SELECT pg_wal_replay_resume()");
  await until(async () => (await found(patient)).length === 2, "the replica to catch up");
});

it("a replica that is gone costs nobody an answer", async () => {
  verifies("beyond.replica.gone");
  await standby.stop("kill");
  expect(await found(patient)).toEqual(["r1", "r2"]);
  expect(await found(strict)).toEqual(["r1", "r2"]);
});
