/**
 * All reads, on a few connections separate from the writer's. The server limits the time of each statement, and this
 * process does, too, in case the server hangs.
 */
import type pg from "pg";
import type { CountQuery, DocRow, LedgerState, ListQuery, RecordQuery } from "../../govern/port/store.ts";
import type { TableDocs, TableName } from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { fromKeyText, toKeyText } from "../key-text.ts";
import { toStoreError } from "./connect/failures.ts";
import { SessionPool } from "./connect/pool.ts";
import type { PgSession } from "./connect/session.ts";
import { READER_SETTINGS } from "./connect/settings.ts";
import { timeLimit } from "./connect/time-limit.ts";
import { countSql, listSql, type SqlQuery } from "./queries.ts";
import { RecordSearch } from "./records.ts";

const CONNECTIONS = 4;
const CONNECT_MS = SERVICE_LIMITS.store_deadline_ms * 0.8;
const READ_MS = SERVICE_LIMITS.store_deadline_ms * 0.96;
const IDLE_MS = 30_000;

const GET = { name: "svc_get", text: "SELECT doc FROM svc_docs WHERE tbl = $1 AND key = $2" };
/** `$1` is a position. The result contains the hash of the record there, or null. */
const VERSION = {
  name: "svc_read_version",
  text: `SELECT xmin::text AS version, records, hash,
    (SELECT l.hash FROM svc_ledger l WHERE l.seq = $1) AS hash_there FROM svc_head WHERE one`,
};
const HEAD = {
  name: "svc_read_head",
  text: "SELECT records, hash, events FROM svc_head WHERE one",
  values: [],
};

const TIME = {
  name: "svc_read_time",
  text: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::text AS ms",
  values: [],
};

/** `version` changes with every batch, even one without records. */
export interface HeadVersion {
  version: string;
  records: number;
  hash: string;
  hash_there: string | null;
}

export class PgReader {
  private readonly pool: SessionPool;
  private readonly search = new RecordSearch((sql) => this.query(sql));

  constructor(url: string) {
    this.pool = new SessionPool({
      url,
      settings: READER_SETTINGS,
      connections: CONNECTIONS,
      connect_ms: CONNECT_MS,
      idle_ms: IDLE_MS,
    });
  }

  async get<N extends TableName>(table: N, key: string): Promise<TableDocs[N] | undefined> {
    const rows = await this.query<{ doc: string }>({ ...GET, values: [table, toKeyText(key)] });
    return rows[0] === undefined ? undefined : (JSON.parse(rows[0].doc) as TableDocs[N]);
  }

  async list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]> {
    const sql = listSql(table, query);
    if (sql === undefined) return [];
    const rows = await this.query<{ key: string; sort: number; doc: string }>(sql);
    return rows.map(({ key, sort, doc }) => ({
      key: fromKeyText(key),
      sort,
      doc: JSON.parse(doc) as TableDocs[N],
    }));
  }

  async count(table: TableName, query: CountQuery): Promise<number> {
    const rows = await this.query<{ n: string }>(countSql(table, query));
    return Number(rows[0]!.n);
  }

  records(query: RecordQuery): Promise<string[]> {
    return this.search.records(query);
  }

  async head(): Promise<LedgerState> {
    const rows = await this.query<{ records: string; hash: string; events: Record<string, number> }>(HEAD);
    if (rows[0] === undefined) throw new SvcError("corrupt", "ledger corrupt: the head row is missing");
    const { records, hash, events } = rows[0];
    return { records: Number(records), hash, events };
  }

  async time(): Promise<number> {
    const [row] = await this.query<{ ms: string }>(TIME);
    return Number(row!.ms);
  }

  /** Reads the head, and the hash at a position. */
  async version(seq = -1): Promise<HeadVersion> {
    const [row] = await this.query<HeadVersion & { records: string }>({ ...VERSION, values: [seq] });
    if (row === undefined) throw new SvcError("corrupt", "ledger corrupt: the head row is missing");
    return { ...row, records: Number(row.records) };
  }

  /** Closes the pool. A hung read delays this only until its timeout. */
  close(): Promise<void> {
    return this.pool.close();
  }

  private async query<R extends pg.QueryResultRow>(sql: SqlQuery): Promise<R[]> {
    const { rows } = await this.lend((session) => ask<R>(session, sql));
    return rows;
  }

  /** Runs work on one of the connections, within the time limit of a read. */
  async lend<T>(work: (session: PgSession) => Promise<T>): Promise<T> {
    const limit = timeLimit(READ_MS);
    try {
      return await this.pool.use(limit.signal, work);
    } catch (error) {
      throw toStoreError(error);
    } finally {
      limit.clear();
    }
  }
}

async function ask<R extends pg.QueryResultRow>(
  session: PgSession,
  sql: SqlQuery,
): Promise<pg.QueryResult<R>> {
  const { client } = session;
  if (!session.pooled) return client.query<R>(sql);
  const [, answer] = await session.together(() =>
    Promise.all([
      session.begin("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"),
      client.query<R>(session.prepared(sql)),
      client.query("COMMIT"),
    ]),
  );
  return answer;
}
