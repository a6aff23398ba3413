/**
 * Everything that only looks: a few connections beside the writer's, each statement limited in time by
 * the server and, in case the server hangs, by us.
 */
import pg from "pg";
import { LIMITS } from "../../kernel/limits.ts";
import type { LedgerState, ListQuery, RecordQuery, Row } from "../port.ts";
import { matchesRecord } from "../query.ts";
import type { TableName, Tables } from "../tables.ts";
import { fromText, toText } from "./encode.ts";
import { failure, notInTime } from "./failures.ts";
import { likePattern } from "./like.ts";
import { countSql, listSql, recordsSql, type Sql } from "./queries.ts";
import { clientConfig } from "./session.ts";
import { idlePause } from "./time-limit.ts";

const CONNECTIONS = 4;
const STATEMENT_MS = LIMITS.store_deadline_ms * 0.8;
const IDLE_MS = 30_000;
/**
 * Every page is read along an index that has its order, and ends where the page is full. Without figures
 * about a table that just grew, the planner would rather collect all matches and sort them.
 */
const SETTINGS = [
  `SET statement_timeout = ${STATEMENT_MS}`,
  ...["jit", "enable_bitmapscan", "enable_sort"].map((name) => `SET ${name} = off`),
].join("; ");
/** How many lines to look through at a time when SQL alone cannot tell. */
const LOOK_AGAIN = 500;

const GET = { name: "svc_get", text: "SELECT doc FROM svc_docs WHERE tbl = $1 AND key = $2" };
const HEAD = {
  name: "svc_read_head",
  text: "SELECT records, hash, events FROM svc_head WHERE one",
  values: [],
};

export class Reader {
  private readonly pool: pg.Pool;

  constructor(url: string) {
    this.pool = new pg.Pool({
      ...clientConfig(url),
      max: CONNECTIONS,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: STATEMENT_MS,
      // Ends a connection whose server does not answer, so that the pool gets its place back.
      query_timeout: LIMITS.store_deadline_ms,
      onConnect: (client) => client.query(SETTINGS),
    });
    // An idle connection that breaks is replaced by the pool; there is nobody to tell.
    this.pool.on("error", () => {});
  }

  async get<N extends TableName>(table: N, key: string): Promise<Tables[N] | undefined> {
    const rows = await this.query<{ doc: string }>({ ...GET, values: [table, toText(key)] });
    return rows[0] === undefined ? undefined : (JSON.parse(rows[0].doc) as Tables[N]);
  }

  async list<N extends TableName>(table: N, query: ListQuery): Promise<Row<N>[]> {
    const sql = listSql(table, query);
    if (sql === undefined) return [];
    const rows = await this.query<{ key: string; sort: number; doc: string }>(sql);
    return rows.map(({ key, sort, doc }) => ({
      key: fromText(key),
      sort,
      doc: JSON.parse(doc) as Tables[N],
    }));
  }

  async count(table: TableName, query: { owner?: string; tag?: string }): Promise<number> {
    const rows = await this.query<{ n: string }>(countSql(table, query));
    return Number(rows[0]!.n);
  }

  async records(query: RecordQuery): Promise<string[]> {
    if (query.q === undefined) return (await this.page(query, undefined)).map(({ line }) => line);
    const like = likePattern(query.q);
    if (like === undefined) return [];
    if (like.exact) return (await this.page(query, like.pattern)).map(({ line }) => line);
    return this.lookAgain(query, like.pattern);
  }

  async head(): Promise<LedgerState> {
    const rows = await this.query<{ records: string; hash: string; events: Record<string, number> }>(HEAD);
    const { records, hash, events } = rows[0]!;
    return { records: Number(records), hash, events };
  }

  /** A read that hangs does not hold this up; its connection is ended by its own timeout. */
  async close(): Promise<void> {
    await Promise.race([this.pool.end().catch(() => {}), idlePause(LIMITS.store_deadline_ms)]);
  }

  /** Takes candidates page by page and keeps those that do contain the text. */
  private async lookAgain(query: RecordQuery, pattern: string): Promise<string[]> {
    const found: string[] = [];
    const rest = { ...query, limit: LOOK_AGAIN };
    for (;;) {
      const page = await this.page(rest, pattern);
      for (const { line } of page) {
        if (found.length < query.limit && matchesRecord(query, line)) found.push(line);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < LOOK_AGAIN || found.length >= query.limit) return found;
      if (query.order === "desc") rest.to = Number(last.seq) - 1;
      else rest.from = Number(last.seq) + 1;
    }
  }

  private async page(
    query: RecordQuery,
    pattern: string | undefined,
  ): Promise<{ seq: string; line: string }[]> {
    const sql = recordsSql(query, pattern);
    return sql === undefined ? [] : this.query(sql);
  }

  private async query<R extends pg.QueryResultRow>(sql: Sql): Promise<R[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(notInTime()), LIMITS.store_deadline_ms * 0.96);
    });
    try {
      const { rows } = await Promise.race([this.pool.query<R>(sql), late]);
      return rows;
    } catch (error) {
      throw failure(error);
    } finally {
      clearTimeout(timer);
    }
  }
}
