/** Stores whose commits a test can keep from becoming durable, each by the means of its medium. */
import pg from "pg";
import { vi } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { type DiskOps, nodeDisk } from "../../src/store/journal/disk.ts";
import { openStore } from "../../src/store/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";

/** Two handles on one place, as two processes would have. */
export interface Held {
  stores: StateStore[];
  /** From here on nothing becomes durable. */
  hold(): Promise<void>;
  /** Resolves when a commit waits for nothing but to be let go. */
  reached(): Promise<void>;
  letGo(): Promise<void>;
}

/** Their syncs wait. */
export async function heldLogged(kind: "files" | "sqlite", folder: string): Promise<Held> {
  const open = kind === "files" ? openFilesStore : openSqliteStore;
  let gate: { promise: Promise<void>; open(): void } | undefined;
  let waiting = 0;
  const sync =
    (call: (fd: number) => Promise<void>) =>
    async (fd: number): Promise<void> => {
      waiting++;
      await gate?.promise;
      waiting--;
      return call(fd);
    };
  const disk: DiskOps = { ...nodeDisk, datasync: sync(nodeDisk.datasync), sync: sync(nodeDisk.sync) };
  return {
    stores: [await open(folder, () => {}, { disk }), await open(folder, () => {}, { disk })],
    hold: async () => {
      let letGo: (() => void) | undefined;
      const promise = new Promise<void>((resolve) => {
        letGo = resolve;
      });
      gate = { promise, open: letGo! };
    },
    reached: () => vi.waitFor(() => until(waiting > 0), { timeout: 30_000 }),
    letGo: async () => {
      gate?.open();
      gate = undefined;
    },
  };
}

const LOCK = 7_300;

/** A trigger that is put off until COMMIT waits for a lock that the test holds. */
export async function heldPostgres(url: string): Promise<Held> {
  const open = () => openStore({ store: "postgres", data: "", database_url: url, warn: () => {} });
  const stores = [await open(), await open()];
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`CREATE FUNCTION test_wait() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_advisory_xact_lock_shared(${LOCK}); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER test_wait AFTER INSERT ON svc_ledger DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION test_wait()`);
  return {
    stores,
    hold: async () => {
      await client.query(`SELECT pg_advisory_lock(${LOCK})`);
    },
    reached: () =>
      vi.waitFor(
        async () => {
          const { rows } = await client.query(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
          );
          until(rows.length > 0);
        },
        { timeout: 30_000 },
      ),
    letGo: async () => {
      await client.end();
    },
  };
}

function until(isSo: boolean): void {
  if (!isSo) throw new Error("not yet");
}
