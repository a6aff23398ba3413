/**
 * Everything that only looks: a few connections beside the writer's, each statement limited in time by
 * the server and, in case the server hangs, by us.
 */
import type pg from "pg";
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { CountQuery, DocRow, LedgerState, ListQuery, RecordQuery } from "../../port/store.ts";
import type { TableName, Tables } from "../../port/tables.ts";
import { fromText, toText } from "../key-text.ts";
import { failure } from "./failures.ts";
import { SessionPool } from "./pool.ts";
import { countSql, listSql, type Sql } from "./queries.ts";
import { RecordSearch } from "./records.ts";
import type { PgSession } from "./session.ts";
import { READER_SETTINGS } from "./settings.ts";
import { timeLimit } from "./time-limit.ts";

const CONNECTIONS = 4;
const CONNECT_MS = LIMITS.store_deadline_ms * 0.8;
const READ_MS = LIMITS.store_deadline_ms * 0.96;
const IDLE_MS = 30_000;

const GET = { name: "svc_get", text: "SELECT doc FROM svc_docs WHERE tbl = $1 AND key = $2" };
/** `$1` is a place; the answer has the hash of the record there, or null. */
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

/** `version` changes with every batch, also with one that leaves no record. */
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

  async get<N extends TableName>(table: N, key: string): Promise<Tables[N] | undefined> {
    const rows = await this.query<{ doc: string }>({ ...GET, values: [table, toText(key)] });
    return rows[0] === undefined ? undefined : (JSON.parse(rows[0].doc) as Tables[N]);
  }

  async list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]> {
    const sql = listSql(table, query);
    if (sql === undefined) return [];
    const rows = await this.query<{ key: string; sort: number; doc: string }>(sql);
    return rows.map(({ key, sort, doc }) => ({
      key: fromText(key),
      sort,
      doc: JSON.parse(doc) as Tables[N],
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

  /** How the head stands, and what is in the place. */
  async version(seq = -1): Promise<HeadVersion> {
    const [row] = await this.query<HeadVersion & { records: string }>({ ...VERSION, values: [seq] });
    if (row === undefined) throw new SvcError("corrupt", "ledger corrupt: the head row is missing");
    return { ...row, records: Number(row.records) };
  }

  /** A read that hangs does not hold this up for longer than it may take. */
  close(): Promise<void> {
    return this.pool.close();
  }

  private async query<R extends pg.QueryResultRow>(sql: Sql): Promise<R[]> {
    const { rows } = await this.lend((session) => ask<R>(session, sql));
    return rows;
  }

  /** One of the connections, for as long as a read may take. */
  async lend<T>(work: (session: PgSession) => Promise<T>): Promise<T> {
    const limit = timeLimit(READ_MS);
    try {
      return await this.pool.use(limit.signal, work);
    } catch (error) {
      throw failure(error);
    } finally {
      limit.clear();
    }
  }
}

async function ask<R extends pg.QueryResultRow>(session: PgSession, sql: Sql): Promise<pg.QueryResult<R>> {
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
