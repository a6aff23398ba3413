/**
 * PostgreSQL going away, coming back, hanging, and losing an answer. Nothing may be answered for that is
 * not there, nothing may be there that was refused for good, and the store mends itself.
 */
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { type FreshDatabase, freshDatabase, type PgServer, startPostgres } from "../support/postgres.ts";
import { countTrials } from "../support/trials.ts";
import { aMoment, until } from "../support/until.ts";
import { expectWhole } from "./chain.ts";
import { PgProxy } from "./pg-proxy.ts";
import { append, draft, put } from "./samples.ts";
import { StoreProcess } from "./worker-client.ts";

const open: StateStore[] = [];
async function openAt(url: string): Promise<StateStore> {
  const store = await openPostgresStore(url, () => {});
  open.push(store);
  return store;
}
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

const UNAVAILABLE = { code: "unavailable" };

/** Repeats the call while the store is unavailable, as a caller would see its recovery. */
async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if ((error as { code?: unknown }).code !== UNAVAILABLE.code) throw error;
      await aMoment();
    }
  }
}

describe("a PostgreSQL that fails", () => {
  let server: PgServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  // A test that failed while the server was down must not fail those after it.
  beforeEach(() => server.start());
  afterAll(() => server.dispose());
  const fresh = async (): Promise<FreshDatabase> => freshDatabase(server);

  it("is noticed when it is down, and used again when it is up", async () => {
    const store = await openAt((await fresh()).url);
    const first = await append(store);
    await server.stop("immediate");
    await expect(append(store)).rejects.toMatchObject(UNAVAILABLE);
    await expect(store.ready()).rejects.toMatchObject(UNAVAILABLE);
    await expect(store.get("meta", "a")).rejects.toMatchObject(UNAVAILABLE);
    await server.start();
    const second = await eventually(() => append(store));
    expect(second).toMatchObject({ seq: 1, prev: first.hash });
    await store.ready();
    await eventually(() => store.head());
    expect(await expectWhole(store)).toHaveLength(2);
    countTrials("postgres", "server down, then up", 1);
  });

  it("may be restarted while nobody is asking, without anybody noticing", async () => {
    const store = await openAt((await fresh()).url);
    await append(store);
    await server.restart("fast");
    expect((await append(store)).seq).toBe(1);
    expect((await store.head()).records).toBe(2);
  });

  it("keeps every answered request through crashes under load", async () => {
    const store = await openAt((await fresh()).url);
    const acked: { seq: number; hash: string }[] = [];
    let over = false;
    const writers = Array.from({ length: 16 }, async () => {
      while (!over) {
        await append(store).then(
          (record) => acked.push(record),
          () => aMoment(5),
        );
      }
    });
    for (const mode of ["immediate", "kill", "immediate"] as const) {
      const before = acked.length;
      await until(() => acked.length >= before + 50, "fifty more answers");
      await server.restart(mode);
    }
    over = true;
    await Promise.all(writers);
    await eventually(() => store.ready());
    const records = await expectWhole(store);
    expect(acked.length).toBeGreaterThan(150);
    for (const { seq, hash } of acked) expect(records[seq]?.hash).toBe(hash);
  });

  it("is given up on when it hangs, at once from then on, and used again when it wakes", async () => {
    const store = await openAt((await fresh()).url);
    await append(store);
    server.pause();
    try {
      const early = Array.from({ length: 30 }, () => append(store));
      await aMoment(500);
      const late = Array.from({ length: 30 }, () => append(store));
      const reads = Array.from({ length: 20 }, () => store.get("meta", "a"));
      const settled = Promise.allSettled([...early, ...late, ...reads]);
      let waiting = late.length;
      for (const one of late) one.catch(() => waiting--);
      // Those waited for the batch before them, and must not wait for their own as well.
      await Promise.allSettled(early);
      await aMoment(1_500);
      expect(waiting).toBe(0);
      for (const outcome of await settled)
        expect(outcome).toMatchObject({ status: "rejected", reason: UNAVAILABLE });
      await expect(append(store)).rejects.toMatchObject(UNAVAILABLE);
      await expect(store.ready()).rejects.toMatchObject(UNAVAILABLE);
    } finally {
      server.resume();
    }
    await eventually(() => append(store));
    await eventually(() => store.get("meta", "a"));
    // The pool has its places back.
    await Promise.all(Array.from({ length: 20 }, () => store.head()));
    await expectWhole(store);
    countTrials("postgres", "server frozen", 1);
  });

  it("wakes waiting readers once the store can listen again", async () => {
    const { url } = await fresh();
    const store = await openAt(url);
    const other = await openAt(url);
    const client = new pg.Client(url);
    await client.connect();
    const woken = store.changed(new AbortController().signal);
    await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
    await client.end();
    await woken;
    const heard = (async () => {
      while ((await store.get("meta", "a")) !== 1) await store.changed(new AbortController().signal);
    })();
    await put(other, "meta", { a: 1 });
    await heard;
  });

  it("does not let a session that hangs with the head block the others for ever", async () => {
    const { url } = await fresh();
    const store = await openAt(url);
    const client = new pg.Client(url);
    client.on("error", () => {});
    await client.connect();
    await client.query("BEGIN; SELECT * FROM svc_head FOR UPDATE");
    await expect(append(store)).rejects.toMatchObject(UNAVAILABLE);
    await client.end();
    expect((await eventually(() => append(store))).seq).toBe(0);
  });

  it("does not let a process that is stopped between deciding and checking block the others for ever", async () => {
    const { url } = await fresh();
    const store = await openAt(url);
    const stranger = new pg.Client(url);
    await stranger.connect();
    const [stopped] = await StoreProcess.start(1, { store: "postgres", data: "", database_url: url });
    void stopped!.ask("load", { writers: 16, label: "stopped" }).catch(() => {});
    // Neither is alone, so both decide before they take the head.
    let beside = true;
    const writing = (async () => {
      while (beside) await append(store).catch(() => {});
    })();
    await stopped!.acked(50);
    await stranger.query("BEGIN; SELECT FROM svc_head FOR UPDATE");
    const waiting = `SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await until(async () => (await stranger.query(waiting)).rows[0].n === 2, "both to wait for the head");
    stopped!.freeze();
    beside = false;
    await stranger.end();
    await writing;
    const { seq } = await eventually(() => append(store, { run_id: "after" }));
    stopped!.thaw();
    await eventually(() => stopped!.ask("append", { count: 1, label: "awake" }));
    await stopped!.kill();
    const records = await expectWhole(store);
    expect(records[seq]?.run_id).toBe("after");
    for (const { seq, hash } of stopped!.acks) expect(records[seq]?.hash).toBe(hash);
    countTrials("postgres", "writer frozen between deciding and checking", 1);
  });

  it("is written to although its sessions begin read-only", async () => {
    const { url, name } = await fresh();
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
    const store = await openAt(url);
    await append(store);
    await client.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await client.end();
    const second = await openAt(url);
    await second.ready();
    await Promise.all([append(store), append(second)]);
    expect(await expectWhole(second)).toHaveLength(3);
  });
});

describe("a COMMIT that is not answered", () => {
  let database: FreshDatabase;
  let proxy: PgProxy;
  let store: StateStore;
  beforeAll(async () => {
    database = await freshDatabase();
    proxy = await PgProxy.start(database.url);
  });
  afterAll(async () => {
    proxy.stop();
    await database.drop();
  });

  const attempt = (label: string) =>
    store.transact({
      run: (tx) => {
        tx.put("meta", label, true);
        return tx.append(draft({ run_id: label }));
      },
    });
  const docsOnly = (label: string) => put(store, "meta", { [label]: true });

  it.each(["answer", "late"] as const)("is found to have worked when it did (%s)", async (loss) => {
    store = await openAt(proxy.url);
    const { records } = await store.head();
    proxy.lose = loss;
    expect(await attempt(`record-${loss}`)).toMatchObject({ seq: records });
    proxy.lose = loss;
    await docsOnly(`docs-${loss}`);
    expect(proxy.lose).toBeUndefined();
    expect(await store.get("meta", `record-${loss}`)).toBe(true);
    expect(await store.get("meta", `docs-${loss}`)).toBe(true);
    expect((await attempt(`after-${loss}`)).seq).toBe(records + 1);
    expect(await expectWhole(store)).toHaveLength(records + 2);
    countTrials("postgres", "COMMIT's answer lost", 2);
  });

  it.each(["question", "half-open"] as const)(
    "is found not to have worked when it did not (%s)",
    async (loss) => {
      store = await openAt(proxy.url);
      const { records } = await store.head();
      proxy.lose = loss;
      await expect(attempt(`record-${loss}`)).rejects.toMatchObject(UNAVAILABLE);
      proxy.lose = loss;
      await expect(docsOnly(`docs-${loss}`)).rejects.toMatchObject(UNAVAILABLE);
      expect(proxy.lose).toBeUndefined();
      expect(await store.get("meta", `record-${loss}`)).toBeUndefined();
      expect(await store.get("meta", `docs-${loss}`)).toBeUndefined();
      expect((await eventually(() => attempt(`after-${loss}`))).seq).toBe(records);
      expect(await expectWhole(store)).toHaveLength(records + 1);
      countTrials("postgres", "COMMIT itself lost", 2);
    },
  );
});
