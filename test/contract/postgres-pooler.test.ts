/** The postgres store behind a pooler in transaction mode, where nothing that belongs to a session can be relied on. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { openStore } from "../../src/store/open.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { expectWhole } from "./chain.ts";
import { PgPooler } from "./pg-pooler.ts";
import { hasPgBouncer, PgBouncer } from "./pgbouncer.ts";
import { append, draft, increment, put } from "./samples.ts";
import { postgresSql } from "./sql.ts";

/** As few as there can be, so that everybody gets everybody else's. */
const SERVER_CONNECTIONS = 2;

interface Pooled {
  database: FreshDatabase;
  /** Behind the pooler. */
  url: string;
  open(): Promise<StateStore>;
}

/** One of our own everywhere, and the one that people use where it is installed. */
const POOLERS: [string, typeof PgPooler | typeof PgBouncer][] = [["a pooler", PgPooler]];
if (hasPgBouncer) POOLERS.push(["PgBouncer", PgBouncer]);

async function behind(
  Pooler: typeof PgPooler | typeof PgBouncer,
  places = SERVER_CONNECTIONS,
): Promise<Pooled> {
  const database = await freshDatabase();
  const pooler = await Pooler.start(database.url, places);
  const stores: StateStore[] = [];
  onTestFinished(async () => {
    for (const store of stores) await store.close();
    pooler.stop();
    await database.drop();
  });
  const open = async (): Promise<StateStore> => {
    const settings = { store: "postgres", data: "", database_url: pooler.url, warn: () => {} } as const;
    const store = await openStore(settings);
    stores.push(store);
    return store;
  };
  return { database, url: pooler.url, open };
}

describe.each(POOLERS)("behind %s", (_, Pooler) => {
  it("several processes write, read and search side by side, and nobody is refused", async () => {
    const { open } = await behind(Pooler);
    const stores = await Promise.all([open(), open(), open()]);
    const work = async (store: StateStore, who: number): Promise<void> => {
      for (let i = 0; i < 30; i++) {
        const n = await store.transact({
          needs: [["meta", "n"]],
          run: (tx) => {
            tx.append(draft({ actor: `h${who}`, run_id: `r${who}`, run_seq: i }));
            return increment(tx, "n");
          },
        });
        expect(await store.get("meta", "n")).toBeGreaterThanOrEqual(n);
        await Promise.all([
          store.records({ run_id: `r${who}`, order: "desc", limit: 5 }),
          store.records({ event: ["intended", "blocked"], limit: 5 }),
          store.list("meta", { limit: 5 }),
          store.count("meta"),
          store.head(),
          store.ready(),
        ]);
      }
    };
    await Promise.all([...stores, ...stores].map(work));
    for (const store of stores) expect(await expectWhole(store)).toHaveLength(180);
  });

  it("processes wake each other", async () => {
    const { open } = await behind(Pooler);
    const [one, two] = [await open(), await open()];
    const { signal } = new AbortController();
    for (let i = 0; i < 5; i++) {
      const [writer, waiter] = i % 2 === 0 ? [one, two] : [two, one];
      const seen = (async () => {
        // A caller that reads first and waits afterwards misses the changes in between.
        for (let change = waiter.changed(signal); (await waiter.get("meta", "i")) !== i; ) {
          await change;
          change = waiter.changed(signal);
        }
      })();
      await put(writer, "meta", { i });
      await seen;
    }
  });

  it("commits are durable with any setting of the role, and other clients find nothing of ours", async () => {
    const { database, url, open } = await behind(Pooler, 1);
    const sql = postgresSql(database.url);
    await sql.run(`ALTER DATABASE ${database.name} SET synchronous_commit = off`);
    const store = await open();
    await sql.run(`CREATE TABLE seen (setting text);
      CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END';
      CREATE TRIGGER look AFTER INSERT ON svc_ledger EXECUTE FUNCTION look()`);
    await append(store);
    await store.records({ limit: 1 });
    expect(await sql.run("SELECT setting FROM seen")).toEqual([{ setting: "on" }]);
    const stranger = postgresSql(url);
    const theirs = "SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'application_name'";
    expect(await stranger.run(theirs)).toEqual([]);
    expect(await stranger.run("SELECT name FROM pg_prepared_statements")).toEqual([]);
  });

  it("a place that was new is made once", async () => {
    const { database, open } = await behind(Pooler, 4);
    const stores = await Promise.all(Array.from({ length: 6 }, () => open()));
    await Promise.all(stores.map((store) => append(store)));
    expect(await expectWhole(stores[0]!)).toHaveLength(6);
    const locks = `SELECT FROM pg_locks WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    expect(await postgresSql(database.url).run(locks)).toEqual([]);
  });
});
