/** What the postgres store needs of a database, what it says when that is not there, and what it keeps to itself. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordQuery, StateStore } from "../../src/govern/port/store.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { settingsSql, WRITER_SETTINGS } from "../../src/store/postgres/connect/settings.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { selfSigned } from "../golden/notify/support/certificate.ts";
import { freshDatabase, type PgServer, startPostgres } from "../support/postgres.ts";
import { tempFile } from "../support/tmp.ts";
import { aMoment, until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { expectWhole } from "./chain.ts";
import { append, approvalDoc, draft, increment, put, remove } from "./samples.ts";
import { postgresSql } from "./sql.ts";

let server: PgServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.dispose());

const open = (url: string, warnings: string[] = []): Promise<StateStore> =>
  openPostgresStore(url, (message) => warnings.push(message));

async function refusal(url: string): Promise<SvcError> {
  const outcome = await open(url).then(
    async (store) => {
      await store.close();
      return new Error("it opened");
    },
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(SvcError);
  return outcome as SvcError;
}

/** Another role on the same database. */
function as(url: string, role: string, password: string): string {
  const other = new URL(url);
  other.username = role;
  other.password = password;
  return other.href;
}

describe("the tables", () => {
  it("are made once, by the first process, and kept", async () => {
    const { url } = await freshDatabase(server);
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(url)));
    await Promise.all(stores.map((store) => append(store)));
    expect(await expectWhole(stores[0]!)).toHaveLength(6);
    await Promise.all(stores.map((store) => store.close()));
    expect(await postgresSql(url).run("SELECT version FROM svc_schema")).toEqual([{ version: 4 }]);
  });

  /** As the third version made them. */
  const THIRD_VERSION = `
    DROP TRIGGER svc_ledger_tenants ON svc_ledger;
    DROP FUNCTION svc_note_tenants;
    DROP TABLE svc_tenants;
    UPDATE svc_schema SET version = 3`;

  /** As the second version made them. */
  const SECOND_VERSION = `
    ${THIRD_VERSION};
    DROP TRIGGER svc_docs_tenant ON svc_docs;
    DROP FUNCTION svc_tenant;
    ALTER TABLE svc_docs DROP COLUMN tenant;
    UPDATE svc_schema SET version = 2`;

  /** As the first version made them. */
  const FIRST_VERSION = `
    ${SECOND_VERSION};
    DROP TRIGGER svc_ledger_chain ON svc_ledger;
    DROP FUNCTION svc_one_chain;
    ALTER TABLE svc_ledger ADD UNIQUE (prev);
    DROP INDEX svc_docs_sort, svc_docs_tag;
    CREATE INDEX svc_docs_sort ON svc_docs (tbl, sort, key);
    CREATE INDEX svc_docs_tag ON svc_docs (tbl, tag, sort, key) WHERE tag <> '';
    UPDATE svc_schema SET version = 1`;

  it("of an older version are changed once, while a server continues writing", async () => {
    const { url } = await freshDatabase(server);
    const running = await open(url);
    await append(running);
    await postgresSql(url).run(FIRST_VERSION);
    let stop = false;
    const writing = (async () => {
      let written = 0;
      while (!stop) written += (await Promise.all([append(running), append(running)])).length;
      return written;
    })();
    const stores = await Promise.all(Array.from({ length: 4 }, () => open(url)));
    await Promise.all(stores.map((store) => append(store)));
    stop = true;
    const written = await writing;
    expect(await expectWhole(running)).toHaveLength(1 + stores.length + written);
    expect(
      await postgresSql(url).run(`SELECT version,
        (SELECT count(*)::int FROM pg_constraint WHERE conname = 'svc_ledger_prev_key') AS indexes,
        (SELECT tgenabled::text FROM pg_trigger WHERE tgname = 'svc_ledger_chain') AS checked FROM svc_schema`),
    ).toEqual([{ version: 4, indexes: 0, checked: "A" }]);
    await Promise.all([running, ...stores].map((store) => store.close()));
  });

  it("of an older version learn whose each document is, also of what a server of that version writes", async () => {
    const { url } = await freshDatabase(server);
    const sql = postgresSql(url);
    const before = await open(url);
    await put(before, "approvals", {
      a: approvalDoc({ id: "a", tenant: 'a "b" \\ c', reason: "\0" }),
      n: approvalDoc({ id: "n", tenant: null }),
    });
    await before.close();
    await sql.run(SECOND_VERSION);
    const store = await open(url);
    const older = `INSERT INTO svc_docs (tbl, key, owner, sort, tag, doc)
      SELECT tbl, key || '2', owner, sort, tag, doc FROM svc_docs WHERE key IN ('a', 'n')`;
    await sql.run(older);
    expect(await store.count("approvals", { tenant: 'a "b" \\ c' })).toBe(2);
    expect(await store.count("approvals", { tenant: "" })).toBe(0);
    expect(await store.count("approvals")).toBe(4);
    await store.close();
  });

  it("of an older version find a tenant's records, those from before and those of a server of that version", async () => {
    const { url } = await freshDatabase(server);
    const sql = postgresSql(url);
    await (await open(url)).close();
    await sql.run(`${THIRD_VERSION}; CREATE ROLE svc_older LOGIN PASSWORD 'pw';
      GRANT SELECT, INSERT ON svc_ledger TO svc_older`);
    const older = await open(url).catch((error: unknown) => error);
    expect(older, "the tables are there again").toMatchObject({ kind: "postgres" });
    await sql.run(THIRD_VERSION);
    const running = older as StateStore;
    const tenants = ["acme", "globex", undefined];
    for (let i = 0; i < 6; i++) await append(running, { tenant: tenants[i % 3], reason: `${i}` });
    const store = await open(url);
    await append(running, { tenant: "acme" });
    for (const [each, tenant] of [
      [store, "globex"],
      [running, "acme"],
    ] as const)
      await each.transact({
        run: (tx) => {
          for (let i = 0; i < 1_500; i++) tx.append(draft({ tenant: i === 1_400 ? tenant : "globex" }));
        },
      });
    const places = async (query: Partial<RecordQuery>) =>
      (await store.records({ tenant: "acme", limit: 9, ...query })).map((line) => JSON.parse(line).seq);
    expect(await places({})).toEqual([0, 3, 6, 2_907]);
    expect(await places({ order: "desc", limit: 3 })).toEqual([2_907, 6, 3]);
    expect(await places({ from: 7, event: "intended" })).toEqual([2_907]);
    expect(await places({ to: 2_906, order: "desc", limit: 1 })).toEqual([6]);
    expect(await places({ from: 7, to: 2_906 })).toEqual([]);
    expect(await places({ from: 1, to: 6 })).toEqual([3, 6]);
    expect(await places({ to: 5, order: "desc", event: "intended" })).toEqual([3, 0]);
    expect(
      await sql.run("SELECT has_table_privilege('svc_older', 'svc_tenants', 'INSERT') AS may"),
      "who may append may note whose it is",
    ).toEqual([{ may: true }]);
    await Promise.all([running, store].map((each) => each.close()));
  });

  it("of an older version are not changed while somebody reads them for long", async () => {
    const { url } = await freshDatabase(server);
    const running = await open(url);
    await append(running);
    await postgresSql(url).run(FIRST_VERSION);
    const dump = new pg.Client(url);
    await dump.connect();
    await dump.query("BEGIN; LOCK TABLE svc_ledger IN ACCESS SHARE MODE");
    expect(await refusal(url)).toMatchObject({ code: "unavailable", message: expect.stringMatching(/dump/) });
    await append(running);
    await dump.end();
    await (await open(url)).close();
    await append(running);
    expect(await expectWhole(running)).toHaveLength(3);
    await running.close();
  });

  it("of a newer version are left alone", async () => {
    const { url } = await freshDatabase(server);
    await (await open(url)).close();
    await postgresSql(url).run("UPDATE svc_schema SET version = 99");
    expect(await refusal(url)).toMatchObject({
      code: "invalid",
      message: expect.stringMatching(/newer svc.*99/),
    });
  });

  it("of somebody else are left alone", async () => {
    const { url } = await freshDatabase(server);
    await postgresSql(url).run("CREATE TABLE svc_docs (mine text)");
    expect(await refusal(url)).toMatchObject({
      code: "invalid",
      message: expect.stringMatching(/did not make/),
    });
    const rows = await postgresSql(url).run("SELECT to_regclass('svc_ledger') AS ledger");
    expect(rows).toEqual([{ ledger: null }]);
  });

  it("may be in a separate schema", async () => {
    const { url } = await freshDatabase(server);
    await postgresSql(url).run("CREATE SCHEMA other");
    const there = new URL(url);
    there.searchParams.set("options", "-c search_path=other");
    const store = await open(there.href);
    await append(store);
    await store.close();
    expect(await postgresSql(url).run("SELECT count(*)::int AS n FROM other.svc_ledger")).toEqual([{ n: 1 }]);
  });
});

describe("the role", () => {
  it("need not own the tables, and then cannot take the triggers away", async () => {
    const { url } = await freshDatabase(server);
    await (await open(url)).close();
    const sql = postgresSql(url);
    await sql.run(`CREATE ROLE svc_server LOGIN PASSWORD 'pw';
      GRANT SELECT ON svc_schema TO svc_server;
      GRANT SELECT, INSERT ON svc_ledger TO svc_server;
      GRANT SELECT, INSERT, UPDATE, DELETE ON svc_docs TO svc_server;
      GRANT SELECT, INSERT, UPDATE ON svc_times TO svc_server;
      GRANT SELECT, INSERT ON svc_tenants TO svc_server;
      GRANT SELECT, UPDATE ON svc_head TO svc_server`);
    const limited = as(url, "svc_server", "pw");
    const warnings: string[] = [];
    const store = await open(limited, warnings);
    await append(store);
    await put(store, "meta", { a: 1 });
    await remove(store, "meta", "a");
    await store.ready();
    await store.scrub();
    expect(warnings.join()).toMatch(/not vacuumed/);
    await store.close();
    const own = postgresSql(limited);
    for (const statement of [
      "ALTER TABLE svc_ledger DISABLE TRIGGER ALL",
      "DROP TABLE svc_ledger",
      "TRUNCATE svc_ledger",
    ]) {
      await expect(own.run(statement), statement).rejects.toThrow(/must be owner|permission denied/);
    }
    await sql.run("REVOKE INSERT ON svc_ledger FROM svc_server; REVOKE UPDATE ON svc_head FROM svc_server");
    expect(await refusal(limited)).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/lacks INSERT on svc_ledger, UPDATE on svc_head/),
    });
  });

  it("that may not create tables gets an error about it", async () => {
    const { url } = await freshDatabase(server);
    await postgresSql(url).run("CREATE ROLE svc_nobody LOGIN PASSWORD 'pw'");
    const { message } = await refusal(as(url, "svc_nobody", "pw"));
    expect(message).toMatch(/may not create the svc_ tables/);
  });
});

describe("connections", () => {
  const limited = async (limit: number): Promise<string> => {
    const { url, name } = await freshDatabase(server);
    const role = `svc_limited_${limit}`;
    await postgresSql(url).run(`CREATE ROLE ${role} LOGIN PASSWORD 'pw' CONNECTION LIMIT ${limit};
      ALTER DATABASE ${name} OWNER TO ${role}`);
    return as(url, role, "pw");
  };

  it.each([3, 4])("may be as few as %i: then everybody waits, and nobody is refused", async (limit) => {
    const store = await open(await limited(limit));
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => [
          append(store, { run_id: `r${i}` }),
          store.get("meta", "a"),
          store.records({ run_id: `r${i}`, limit: 5 }),
          store.head(),
        ]).flat(),
      );
    }
    await store.ready();
    expect(await expectWhole(store)).toHaveLength(200);
    await store.close();
  });

  it("are never more than six, however much is asked at once", async () => {
    const { url, name } = await freshDatabase(server);
    const store = await open(url);
    const work = (_: unknown, i: number) => [
      append(store),
      store.head(),
      store.records({ from: i, limit: 5 }),
    ];
    await Promise.all(Array.from({ length: 100 }, work).flat());
    // They stay for a while after the rush: these are all that there were.
    const there = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = '${name}'`;
    const [{ n }] = (await postgresSql(server.url()).run(there)) as [{ n: number }];
    expect(n).toBeLessThanOrEqual(6);
    await store.close();
  });

  it("that are too few are found out at the start, and said", async () => {
    const { message } = await refusal(await limited(2));
    expect(message).toMatch(/no more connections; a process of svc needs three/);
  });

  it("that others hold are waited for", async () => {
    const url = await limited(5);
    const store = await open(url);
    const others = await Promise.all(
      Array.from({ length: 2 }, async () => {
        const client = new pg.Client(url);
        await client.connect();
        return client;
      }),
    );
    const sql = postgresSql(server.url());
    const own = `datname = '${new URL(url).pathname.slice(1)}' AND application_name = 'svc'`;
    await sql.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`);
    const asked = Promise.all([append(store), store.head(), append(store), store.get("meta", "a")]);
    // Their holders leave while the store waits. The final refusal would come only after its deadline.
    for (const client of others) await client.end();
    await asked;
    expect(await expectWhole(store)).toHaveLength(2);
    await store.close();
  });
});

describe("messages", () => {
  it("never hold the password, with any mistake in the URL", async () => {
    const secret = "s3cr3t-p4ss";
    const good = new URL(server.url());
    const urls = [
      as(server.url(), "svc", secret),
      as(server.url(), "nobody_here", secret),
      as(server.url("no_such_database"), "svc", secret),
      `postgres://svc:${secret}@127.0.0.1:1/x`,
      `postgres://svc:${secret}@no-such-host.invalid/x`,
      `postgres://svc:${secret}@[::bad/x`,
      `postgres://svc:${secret}@127.0.0.1:99999/x`,
      `postgres://svc:${secret}@${good.host}/x?sslmode=require`,
      `nonsense ${secret}`,
    ];
    for (const url of urls) {
      const error = await refusal(url);
      const whole = [error.message, String(error.stack), JSON.stringify(error), String(error.cause)].join();
      expect(whole, url).not.toContain(secret);
      expect(error.message).not.toBe("");
    }
  });

  it("warns of a server that does not sync", async () => {
    const warnings: string[] = [];
    const { url } = await freshDatabase(server);
    await (await open(url, warnings)).close();
    expect(warnings.join()).toMatch(/fsync/);
  });
});

describe("the database", () => {
  it.each([
    ["off", "on"],
    ["local", "on"],
    ["remote_apply", "remote_apply"],
  ])("that is set to commit with %s is told to commit with %s", async (given, used) => {
    const { url } = await freshDatabase(server);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(`SET synchronous_commit = ${given}`);
      await client.query("BEGIN");
      await client.query(settingsSql(WRITER_SETTINGS, "transaction"));
      expect((await client.query("SHOW synchronous_commit")).rows).toEqual([{ synchronous_commit: used }]);
      await client.query("COMMIT");
      await client.query(settingsSql(WRITER_SETTINGS, "session"));
      expect((await client.query("SHOW synchronous_commit")).rows).toEqual([{ synchronous_commit: used }]);
    } finally {
      await client.end();
    }
  });

  it("must be UTF-8", async () => {
    await postgresSql(server.url()).run(
      "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'",
    );
    expect(await refusal(server.url("latin"))).toMatchObject({
      message: expect.stringMatching(/LATIN1.*UTF8/),
    });
  });

  it("is spoken to over TLS where the URL asks for it, and not at all where it cannot be verified", async () => {
    verifies("beyond.standby.tls");
    const { url } = await freshDatabase(server);
    const sql = postgresSql(url);
    const { key, cert } = selfSigned(["localhost"]);
    const [{ folder }] = (await sql.run("SELECT current_setting('data_directory') AS folder")) as [
      { folder: string },
    ];
    for (const [name, pem] of [
      ["server.key", key],
      ["server.crt", cert],
    ] as const)
      await sql.run(`COPY (SELECT unnest(string_to_array('${pem.trim()}', E'\\n')))
        TO PROGRAM 'umask 077; cat > "${folder}/${name}"'`);
    await sql.run("ALTER SYSTEM SET ssl = on");
    await sql.run("SELECT pg_reload_conf()");
    const secured = (authority: string) => {
      const at = new URL(url);
      at.hostname = "localhost";
      at.searchParams.set("sslmode", "verify-full");
      at.searchParams.set("sslrootcert", tempFile("ca.crt", authority));
      return at.href;
    };
    try {
      await until(async () => {
        const store = await open(secured(cert)).catch(() => undefined);
        await store?.close();
        return store !== undefined;
      }, "TLS to be spoken");
      const store = await open(secured(cert));
      await append(store);
      const plain = "SELECT count(*)::int AS n FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)";
      const ours = "datname = current_database() AND pid <> pg_backend_pid()";
      expect(await sql.run(`${plain} WHERE NOT ssl AND ${ours}`)).toEqual([{ n: 0 }]);
      expect(await sql.run(`${plain} WHERE ssl AND ${ours}`)).not.toEqual([{ n: 0 }]);
      await store.close();
      expect(await refusal(secured(selfSigned(["localhost"]).cert))).toMatchObject({ code: "unavailable" });
    } finally {
      await sql.run("ALTER SYSTEM RESET ssl");
      await sql.run("SELECT pg_reload_conf()");
    }
  });

  it("can be reached over a unix socket", async () => {
    const { name } = await freshDatabase(server);
    const store = await open(server.socketUrl(name));
    await append(store);
    expect(await store.head()).toMatchObject({ records: 1 });
    await store.close();
  });

  it("holds one unit's impossible value against that unit alone", async () => {
    const { url } = await freshDatabase(server);
    const store = await open(url);
    // Random, or PostgreSQL would compress it into what an index can hold.
    const tooLong = Array.from({ length: 3_000 }, () => Math.random().toString(36).slice(2)).join("");
    const outcomes = await Promise.allSettled([
      append(store, { run_id: "before" }),
      append(store, { run_id: tooLong }),
      put(store, "meta", { [tooLong]: 1 }),
      put(store, "meta", { unspeakable: 1n as never }),
      append(store, { run_id: "after" }),
    ]);
    expect(outcomes.map(({ status }) => status).join(" ")).toBe(
      "fulfilled rejected rejected rejected fulfilled",
    );
    for (const outcome of outcomes.slice(1, 4))
      expect(outcome).toMatchObject({ reason: { code: "invalid" } });
    expect((await expectWhole(store)).map(({ run_id }) => run_id)).toEqual(["before", "after"]);
    await store.close();
  });

  it("loses no change to a document that another program has deleted", async () => {
    const { url } = await freshDatabase(server);
    const store = await open(url);
    await put(store, "meta", { count: 1 });
    // Deletes the document after the batch has read it.
    await postgresSql(url).run(`
      CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
      CREATE TRIGGER meddle BEFORE UPDATE ON svc_docs FOR EACH ROW EXECUTE FUNCTION meddle()`);
    const raise = () =>
      store.transact({
        run: (tx) => {
          tx.append(draft());
          return increment(tx, "count");
        },
      });
    await expect(raise()).rejects.toMatchObject({ code: "unavailable" });
    expect((await store.head()).records).toBe(0);
    await postgresSql(url).run("DROP TRIGGER meddle ON svc_docs");
    expect(await raise()).toBe(2);
    await store.close();
  });

  it("is looked at again when its head row was changed behind our back", async () => {
    const { url } = await freshDatabase(server);
    const store = await open(url);
    for (let i = 0; i < 3; i++) await append(store);
    await postgresSql(url).run("UPDATE svc_head SET records = 2");
    await expect(append(store)).rejects.toMatchObject({ code: "corrupt" });
    await expect(store.ready()).rejects.toMatchObject({ code: "corrupt" });
    await postgresSql(url).run("UPDATE svc_head SET records = 3");
    expect((await append(store)).seq).toBe(3);
    await expectWhole(store);
    await store.close();
  });
});

describe("plans", () => {
  it("of reads and of batches use indexes, also those made while the tables were empty", async () => {
    const { url } = await freshDatabase(server);
    const store = await open(url);
    await append(store);
    const client = new pg.Client(url);
    await client.connect();
    await store.transact({
      run: (tx) => {
        for (let i = 0; i < 3_000; i++) {
          const tenant = i === 10 ? "rare" : i % 100 === 0 ? "acme" : "globex";
          const ts_ms = i * 60_000;
          tx.append(draft({ run_id: `r${i % 50}`, tool: `t${i % 7}`, actor: `a${i % 5}`, tenant, ts_ms }));
          tx.put("steps", `s${i}`, { run_id: `r${i % 50}`, step: i, status: "intended" } as never);
          const asked = {
            run_id: "r",
            requested_ms: i,
            status: "open",
            tenant,
            internal: { principal: "p" },
          };
          tx.put("approvals", `a${i}`, asked as never);
        }
      },
    });
    const scans = async (): Promise<number> => {
      const { rows } = await client.query<{ n: string }>(
        "SELECT sum(seq_tup_read) AS n FROM pg_stat_user_tables WHERE relname IN ('svc_ledger', 'svc_docs')",
      );
      return Number(rows[0]!.n);
    };
    await client.query("ANALYZE; SELECT pg_stat_force_next_flush()");
    await client.query("SELECT 1");
    const before = await scans();
    for (let i = 0; i < 10; i++) {
      await store.records({ run_id: "r7", limit: 50 });
      await store.records({ event: ["intended", "blocked"], order: "desc", limit: 50 });
      await store.records({ since_ms: 100_000_000, until_ms: 110_000_000, limit: 50 });
      await store.records({ tool: "t3", actor: "a1", order: "desc", limit: 50 });
      await store.records({ tenant: "acme", order: "desc", limit: 20 });
      await store.records({ tenant: "acme", event: "intended", q: "acme", limit: 50 });
      await store.records({ tenant: "acme", since_ms: 100_000_000, until_ms: 110_000_000, limit: 50 });
      await store.list("steps", { owner: "r7", limit: 50 });
      await store.list("approvals", { tag: ["open", "approved"], from: 100, limit: 50 });
      await store.list("approvals", { order: "desc", limit: 50 });
      await store.count("steps", { owner: "r7" });
      await store.list("approvals", { tenant: "acme", order: "desc", limit: 50 });
      await store.count("approvals", { tenant: "acme", tag: "open" });
      await store.transact({
        needs: [["steps", `s${i}`]],
        run: (tx) => tx.put("steps", `s${i}`, tx.get("steps", `s${i}`)!),
      });
      await store.transact({ run: (tx) => tx.delete("steps", `s${100 + i}`) });
    }
    const own = async (query: Partial<RecordQuery>) =>
      (await store.records({ tenant: "acme", limit: 50, ...query })).map((line) => JSON.parse(line).seq);
    const all = Array.from({ length: 30 }, (_, i) => 1 + 100 * i);
    expect(await own({})).toEqual(all);
    expect(await own({ order: "desc", from: 102, limit: 7 })).toEqual(all.toReversed().slice(0, 7));
    expect(await own({ since_ms: 500 * 60_000, until_ms: 900 * 60_000, tool: "t0" })).toEqual([701]);
    await store.close();
    // Backends report their counts when they end, a moment after the request to end.
    await aMoment(300);
    expect(await scans()).toBe(before);
    const looked = async (): Promise<number> => {
      const { rows } = await client.query<{ n: string }>(
        "SELECT idx_tup_fetch AS n FROM pg_stat_user_tables WHERE relname = 'svc_ledger'",
      );
      return Number(rows[0]!.n);
    };
    const known = await looked();
    const again = await open(url);
    for (let i = 0; i < 10; i++)
      expect(await again.records({ tenant: "rare", order: "desc", limit: 50 })).toHaveLength(1);
    await again.close();
    await until(async () => (await looked()) > known + 2_000, "what was looked at to be counted");
    expect(await looked(), "a stretch of the chain a search, not the chain").toBeLessThan(known + 10_000);
    // And it would have shown.
    await postgresSql(url).run("SELECT count(line) FROM svc_ledger");
    await until(async () => (await scans()) !== before, "a scan to be counted");
    await client.end();
  });
});
