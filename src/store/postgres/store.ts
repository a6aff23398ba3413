/**
 * The distributed store: several servers, one PostgreSQL. This file connects its modules; the README in this directory
 * describes the life of a record.
 */
import type {
  CountQuery,
  DocRow,
  LedgerState,
  ListQuery,
  RecordQuery,
  ReplicaConfig,
  StateStore,
  UnitOfWork,
} from "../../govern/port/store.ts";
import type { TableDocs, TableName } from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { PendingUnit } from "../batch.ts";
import { changeSignal } from "../change-signal.ts";
import { GroupCommit } from "../group-commit.ts";
import { WriteHealth } from "../write-health.ts";
import { AcknowledgedHead } from "./acknowledged-head.ts";
import { toStoreError } from "./connect/failures.ts";
import { hostsOf } from "./connect/hosts.ts";
import { CommitListener } from "./connect/listener.ts";
import { PostgresReplica } from "./connect/replica.ts";
import { PgSession } from "./connect/session.ts";
import { timeLimit } from "./connect/time-limit.ts";
import { PgReader } from "./reader.ts";
import { prepareDatabase } from "./schema.ts";
import { tryRecord } from "./write-test.ts";
import { type BatchStats, PgWriter, type WaitingCallers } from "./writer.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

/** A first start creates tables and indexes, perhaps after waiting for another process that does the same. */
const PREPARE_MS = 30_000;
const SCRUB_MS = 600_000;

export async function openPostgresStore(
  url: string,
  warn: Warn,
  replica?: ReplicaConfig,
): Promise<StateStore> {
  if (replica !== undefined && hostsOf(replica.url).length > 1)
    throw new SvcError(
      "invalid",
      "database_read_url: names several hosts; name one replica, whose lag is watched",
    );
  await prepare(url, warn);
  const store = new PostgresStore(url, warn, replica);
  try {
    await store.start();
  } catch (error) {
    await store.close();
    throw toStoreError(error);
  }
  return store;
}

async function prepare(url: string, warn: Warn): Promise<void> {
  const limit = timeLimit(PREPARE_MS);
  try {
    const session = await PgSession.openPatiently(url, { signal: limit.signal });
    try {
      await session.until(limit.signal, () => prepareDatabase(session.client));
      await session.until(limit.signal, () => warnOfSettings(session, warn));
    } finally {
      await session.end();
    }
  } catch (error) {
    throw toStoreError(error);
  } finally {
    limit.clear();
  }
}

async function warnOfSettings({ client }: PgSession, warn: Warn): Promise<void> {
  const { rows } = await client.query<{ fsync: string }>("SELECT current_setting('fsync') AS fsync");
  if (rows[0]?.fsync === "off") {
    warn("this PostgreSQL runs with fsync off: a power cut can lose records that were answered for");
  }
}

/** Returns the cost of the store's batches so far, or undefined for another kind of store. */
export function batchStatsOf(store: StateStore): BatchStats | undefined {
  return store instanceof PostgresStore ? store.work : undefined;
}

class PostgresStore implements StateStore {
  readonly kind = "postgres" as const;
  private readonly url: string;
  private readonly warn: Warn;
  private readonly signal = changeSignal();
  private readonly acknowledged = new AcknowledgedHead();
  private readonly writer: PgWriter;
  private readonly reader: PgReader;
  readonly replica: PostgresReplica | undefined;
  private readonly listener: CommitListener;
  private readonly commits = new GroupCommit((batch, until, leave) => this.commit(batch, { until, leave }));
  private readonly health = new WriteHealth();
  private isSound = true;
  private closing: Promise<void> | undefined;

  constructor(url: string, warn: Warn, replica: ReplicaConfig | undefined) {
    this.url = url;
    this.warn = warn;
    this.writer = new PgWriter(url, this.acknowledged);
    this.reader = new PgReader(url);
    if (replica !== undefined)
      this.replica = new PostgresReplica(replica.url, replica.max_lag_ms, this.reader);
    this.listener = new CommitListener(url, {
      acknowledged: this.acknowledged,
      isOwn: (process_id) => this.writer.isServedBy(process_id),
      wake: () => this.signal.notify(),
    });
  }

  get work(): BatchStats {
    return this.writer.work;
  }

  async start(): Promise<void> {
    await this.listener.start();
    await this.unlessCorrupt(() => this.writer.check());
    // Detects a server with too few connections now, before the first reader does.
    await this.unlessCorrupt(() => this.reader.head());
  }

  transact<T>(unit: UnitOfWork<T>): Promise<T> {
    return this.commits.submit(unit);
  }

  async get<N extends TableName>(table: N, key: string): Promise<TableDocs[N] | undefined> {
    this.assertOpen();
    return this.reader.get(table, key);
  }

  async list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]> {
    this.assertOpen();
    return this.reader.list(table, query);
  }

  async count(table: TableName, query: CountQuery = {}): Promise<number> {
    this.assertOpen();
    return this.reader.count(table, query);
  }

  async records(query: RecordQuery): Promise<string[]> {
    this.assertOpen();
    return this.reader.records(query);
  }

  async head(): Promise<LedgerState> {
    this.assertOpen();
    return this.reader.head();
  }

  async time(): Promise<number> {
    this.assertOpen();
    return this.reader.time();
  }

  async changed(signal: AbortSignal): Promise<void> {
    this.assertOpen();
    await this.signal.wait(signal);
  }

  /** Commits an empty batch durably, which succeeds only if the database can record now. */
  async ready(): Promise<void> {
    await this.transact({ run: () => undefined });
    await this.health.settle(() => this.reader.lend(tryRecord));
  }

  async scrub(): Promise<void> {
    this.assertOpen();
    try {
      const problem = await vacuum(this.url);
      if (problem !== undefined) this.warn("deleted documents were not vacuumed away", { problem });
    } catch (error) {
      this.warn("deleted documents were not vacuumed away", { problem: toStoreError(error).message });
    }
  }

  close(): Promise<void> {
    this.closing ??= this.shut();
    return this.closing;
  }

  private async shut(): Promise<void> {
    await this.commits.close();
    await Promise.all([this.writer.close(), this.listener.close()]);
    await Promise.all([this.reader.close(), this.replica?.close()]);
    this.signal.notify();
  }

  private async commit(batch: readonly PendingUnit[], callers: WaitingCallers): Promise<undefined> {
    try {
      await this.writer.commit(batch, callers);
    } catch (error) {
      this.health.raise();
      this.warnedOf(error);
      throw error;
    }
    this.isSound = true;
    this.signal.notify();
  }

  /** A damaged ledger stays readable, so that you can find the damage. The store refuses only appends. */
  private async unlessCorrupt(check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (error) {
      if (!this.warnedOf(error)) throw error;
    }
  }

  /** Logs a damaged or outdated ledger once. Returns whether the error is about one. */
  private warnedOf(error: unknown): boolean {
    if (!(error instanceof SvcError) || error.code !== "corrupt") return false;
    if (this.isSound) this.warn(error.message);
    this.isSound = false;
    return true;
  }

  private assertOpen(): void {
    if (this.closing !== undefined) throw new SvcError("unavailable", "the store is closed");
  }
}

/** Runs VACUUM on a separate connection, because it can take long. Returns the server's warning about skipped tables. */
async function vacuum(url: string): Promise<string | undefined> {
  const limit = timeLimit(SCRUB_MS);
  try {
    const session = await PgSession.open(url, {
      signal: limit.signal,
      settings: { lock_timeout: "'60000'" },
    });
    try {
      await session.until(limit.signal, () => session.client.query("VACUUM (INDEX_CLEANUP ON) svc_docs"));
      return session.warning;
    } finally {
      await session.end();
    }
  } finally {
    limit.clear();
  }
}
