/**
 * PostgreSQL as people run it: a primary that dies, a standby that takes over under the same database URL, a ledger that
 * is checked where nothing may be written, and a dump that becomes a database again.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { PgSession } from "../../src/store/postgres/connect/session.ts";
import { isCommitted } from "../../src/store/postgres/round-trips.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { speak } from "../support/io.ts";
import { type FreshDatabase, freshDatabase, type PgServer, startPostgres } from "../support/postgres.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { countTrials } from "../support/trials.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

const RUN = { run_id: "r", permissions: ["crm.read"] };
const ask = ({ call }: TestServer) =>
  call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "look" });

async function serverOn(url: string): Promise<TestServer> {
  return testServer({ store: await openPostgresStore(url, () => {}) });
}

const verify = async (url: string) =>
  (await speak(["verify", "--store", "postgres"], { cwd: tempDir(), env: { SVC_DATABASE_URL: url } })).out;

describe("a primary and a synchronous standby", () => {
  let primary: PgServer;
  let standby: PgServer;
  let database: FreshDatabase;

  beforeAll(async () => {
    primary = await startPostgres();
    standby = await primary.standby();
    database = await freshDatabase(primary);
    await query(primary.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await query(primary.url(), "SELECT pg_reload_conf()");
    const state = "SELECT sync_state FROM pg_stat_replication";
    await until(
      async () => (await query(primary.url(), state))[0]?.["sync_state"] === "sync",
      "the standby to be waited for",
    );
    const has = () =>
      query(standby.url(database.name), "SELECT").then(
        () => true,
        () => false,
      );
    await until(has, "the standby to have the database");
  });

  afterAll(async () => {
    await standby.dispose();
    await primary.dispose();
  });

  /** The standby first, so that it has to be passed over. */
  const both = () =>
    database.url.replace(`127.0.0.1:${primary.port}`, `127.0.0.1:${standby.port},127.0.0.1:${primary.port}`);

  async function session(): Promise<PgSession> {
    const opened = await PgSession.open(both(), { signal: new AbortController().signal });
    onTestFinished(() => opened.end());
    return opened;
  }

  it("svc verify reads the standby, and writes nothing there", async () => {
    verifies("beyond.standby.verify");
    const server = await serverOn(both());
    await server.call("agent", "POST", "/v1/runs", RUN);
    await ask(server);
    const there = await verify(database.url);
    expect(there).toMatch(/^ok: [1-9]\d* records?, head [0-9a-f]{64}\n/);
    await until(async () => (await verify(standby.url(database.name))) === there, "the standby to have it");
    expect(await verify(both())).toBe(there);
  });

  it("a server continues with the standby that was promoted, and nothing that was answered is lost", async () => {
    verifies("beyond.standby.promoted", "beyond.standby.hosts");
    const server = await serverOn(both());
    const answered: number[] = [];
    const refused: number[] = [];
    let is_over = false;
    const asking = Array.from({ length: 8 }, async () => {
      while (!is_over) {
        const { status, body } = await ask(server);
        if (status === 200) answered.push(body.step);
        else refused.push(status);
      }
    });
    const answers = (more: number) => {
      const enough = answered.length + more;
      return until(() => answered.length >= enough, "further answers");
    };
    // Every answered record is on the standby, so this one is, too.
    const [{ xid }] = (await query(database.url, "SELECT pg_current_xact_id() AS xid")) as [{ xid: string }];
    const { timeline } = await session();
    await answers(50);
    await primary.stop("kill");
    const before = answered.length;
    await query(standby.url(), "SELECT pg_promote()");
    await answers(50);
    is_over = true;
    await Promise.all(asking);
    expect(refused.filter((status) => status !== 503)).toEqual([]);
    expect(new Set(answered).size).toBe(answered.length);
    const store = server.app.core.store;
    const lines = await store.records({ run_id: "r", event: "intended", limit: Number.MAX_SAFE_INTEGER });
    const kept = new Set(lines.map((line) => (JSON.parse(line) as { step: number }).step));
    expect(answered.filter((step) => !kept.has(step))).toEqual([]);
    expect(await verify(standby.url(database.name))).toMatch(/^ok: /);
    // A transaction of the old primary has a number that the new one may have given to another.
    const looking = await session();
    expect(await isCommitted(looking, { last: undefined, xid, timeline: looking.timeline })).toBe(true);
    await expect(isCommitted(looking, { last: undefined, xid, timeline })).rejects.toThrow(
      /may have been recorded/,
    );
    countTrials("postgres", "answers before a primary was killed and its standby promoted", before);
  });
});

it("several replicas to read from are refused, since the lag of one is watched", async () => {
  verifies("beyond.standby.one-replica");
  const replica = { url: "postgres://a,b/x", max_lag_ms: 1 };
  await expect(openPostgresStore("postgres://a/x", () => {}, replica)).rejects.toThrow(/names several hosts/);
});

/** A whole PostgreSQL of the machine; npm's has no programs but the server's own. */
const BIN = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" }).stdout?.trim() ?? "";
const program = (name: string) => join(BIN, name);
const hasDump =
  BIN !== "" && ["postgres", "initdb", "pg_dump", "pg_restore"].every((name) => existsSync(program(name)));

if (hasDump) {
  it("a dump taken from a live server is a database that verifies and is gone on from", async () => {
    const postgres = await startPostgres({
      binaries: { postgres: program("postgres"), initdb: program("initdb") },
    });
    onTestFinished(() => postgres.dispose());
    const { url } = await freshDatabase(postgres);
    const server = await serverOn(url);
    await server.call("agent", "POST", "/v1/runs", RUN);
    for (let step = 0; step < 5; step++) expect(await ask(server)).toMatchObject({ body: { step } });
    const file = join(tempDir(), "svc.dump");
    execFileSync(program("pg_dump"), ["--format=custom", "--no-owner", `--file=${file}`, url]);
    const told = await verify(url);
    await ask(server);
    const restored = await freshDatabase(postgres);
    execFileSync(program("pg_restore"), ["--no-owner", `--dbname=${restored.url}`, file]);
    expect(await verify(restored.url)).toBe(told);
    const again = await serverOn(restored.url);
    expect(await ask(again)).toMatchObject({ status: 200, body: { step: 5 } });
    await expect(query(restored.url, "DELETE FROM svc_ledger")).rejects.toThrow(/append-only/);
    expect(await verify(restored.url)).toMatch(/^ok: /);
  });
}
