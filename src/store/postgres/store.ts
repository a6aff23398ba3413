/**
 * The distributed store: several servers, one PostgreSQL. This file puts the parts together; see the
 * README beside it for the life of a record.
 */
import { SvcError } from "../../kernel/errors.ts";
import type {
  CountQuery,
  DocRow,
  LedgerState,
  ListQuery,
  RecordQuery,
  ReplicaPlace,
  Store,
  Unit,
} from "../../port/store.ts";
import type { TableName, Tables } from "../../port/tables.ts";
import type { Pending } from "../batch.ts";
import { changeSignal } from "../change-signal.ts";
import { Doubt } from "../doubt.ts";
import { GroupCommit } from "../group-commit.ts";
import { failure } from "./failures.ts";
import { hostsOf } from "./hosts.ts";
import { Listener } from "./listener.ts";
import { PgReader } from "./reader.ts";
import { PostgresReplica } from "./replica.ts";
import { prepareDatabase } from "./schema.ts";
import { PgSession } from "./session.ts";
import { timeLimit } from "./time-limit.ts";
import { Told } from "./told.ts";
import { tryRecord } from "./try-record.ts";
import { type Callers, type Work, Writer } from "./writer.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

/** A first start creates tables and indexes, perhaps behind another process that does the same. */
const PREPARE_MS = 30_000;
const SCRUB_MS = 600_000;

export async function openPostgresStore(url: string, warn: Warn, replica?: ReplicaPlace): Promise<Store> {
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
    throw failure(error);
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
    throw failure(error);
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

/** What the store's batches have cost so far; undefined for another store. */
export function workOf(store: Store): Work | undefined {
  return store instanceof PostgresStore ? store.work : undefined;
}

class PostgresStore implements Store {
  readonly kind = "postgres" as const;
  private readonly url: string;
  private readonly warn: Warn;
  private readonly signal = changeSignal();
  private readonly told = new Told();
  private readonly writer: Writer;
  private readonly reader: PgReader;
  readonly replica: PostgresReplica | undefined;
  private readonly listener: Listener;
  private readonly commits = new GroupCommit((batch, until, leave) => this.commit(batch, { until, leave }));
  private readonly doubt = new Doubt();
  private isSound = true;
  private closing: Promise<void> | undefined;

  constructor(url: string, warn: Warn, replica: ReplicaPlace | undefined) {
    this.url = url;
    this.warn = warn;
    this.writer = new Writer(url, this.told);
    this.reader = new PgReader(url);
    if (replica !== undefined)
      this.replica = new PostgresReplica(replica.url, replica.max_lag_ms, this.reader);
    this.listener = new Listener(url, {
      told: this.told,
      isOwn: (process_id) => this.writer.isServedBy(process_id),
      wake: () => this.signal.notify(),
    });
  }

  get work(): Work {
    return this.writer.work;
  }

  async start(): Promise<void> {
    await this.listener.start();
    await this.unlessCorrupt(() => this.writer.check());
    // A server that allows too few connections is found out now, and not by whoever reads first.
    await this.unlessCorrupt(() => this.reader.head());
  }

  transact<T>(unit: Unit<T>): Promise<T> {
    return this.commits.submit(unit);
  }

  async get<N extends TableName>(table: N, key: string): Promise<Tables[N] | undefined> {
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

  async changed(signal: AbortSignal): Promise<void> {
    this.assertOpen();
    await this.signal.wait(signal);
  }

  /** A batch without effect, made durable like any other: only a database that can record now lets it through. */
  async ready(): Promise<void> {
    await this.transact({ run: () => undefined });
    await this.doubt.settle(() => this.reader.lend(tryRecord));
  }

  async scrub(): Promise<void> {
    this.assertOpen();
    try {
      const problem = await vacuum(this.url);
      if (problem !== undefined) this.warn("deleted documents were not vacuumed away", { problem });
    } catch (error) {
      this.warn("deleted documents were not vacuumed away", { problem: failure(error).message });
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

  private async commit(batch: readonly Pending[], callers: Callers): Promise<undefined> {
    try {
      await this.writer.commit(batch, callers);
    } catch (error) {
      this.doubt.raise();
      this.warnedOf(error);
      throw error;
    }
    this.isSound = true;
    this.signal.notify();
  }

  /** A damaged ledger can still be read, and must be, to find the damage; only appends are refused. */
  private async unlessCorrupt(check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (error) {
      if (!this.warnedOf(error)) throw error;
    }
  }

  /** Tells once of a ledger that is not what it was or should be; answers whether that is what is wrong. */
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

/** On a connection of its own, since it may take longer than any statement of ours. Answers what was skipped. */
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
