/**
 * Searches the ledger. One statement answers a query if SQL can decide it. Otherwise this process filters page by page,
 * so that no statement exceeds the time limit of a read.
 */
import type pg from "pg";
import type { RecordQuery } from "../../govern/port/store.ts";
import { matchesRecord } from "../query-match.ts";
import { likePattern } from "./like.ts";
import {
  FIRST_TENANT_RANGE_SQL,
  type OwnQuery,
  ownRecordsSql,
  recordsSql,
  type SqlQuery,
  seqBoundsSql,
  TENANT_RANGE_RECORDS,
  tenantRangeOf,
  tenantRangesSql,
} from "./queries.ts";

/** The number of lines per page if SQL alone cannot decide. */
const LOOK_AGAIN = 500;
/** The number of ranges that one statement searches for the records of a tenant. */
const STRETCHES = 32;

interface Row extends pg.QueryResultRow {
  seq: string;
  line: string;
}
type Read = (query: RecordQuery) => Promise<Row[]>;

export class RecordSearch {
  private readonly ask: <R extends pg.QueryResultRow>(sql: SqlQuery) => Promise<R[]>;
  private noted: number | undefined;

  constructor(ask: RecordSearch["ask"]) {
    this.ask = ask;
  }

  async records(query: RecordQuery): Promise<string[]> {
    const { tenant, run_id, event, actor, tool, q } = query;
    // A run belongs to one tenant.
    if (tenant === undefined || run_id !== undefined) {
      if (q === undefined) return (await this.page(query, undefined)).map(({ line }) => line);
      const pattern = likePattern(q);
      // Most pattern matches are real matches, so the first page is no larger than the limit.
      return firstOf([walk(query, (rest) => this.page(rest, pattern), query.limit)]);
    }
    // Two scans alternate: over the tenant's records, and over the records with the field. The first to end has the
    // answer, so a few matches never need a scan over many records of the tenant or of its neighbors.
    const ways = [walk(query, (rest) => this.own({ ...rest, tenant }))];
    if ((event ?? actor ?? tool) !== undefined)
      ways.push(walk(query, (rest) => this.page({ ...rest, tenant: undefined }, undefined)));
    return firstOf(ways);
  }

  private async page(query: RecordQuery, pattern: string | undefined): Promise<Row[]> {
    const sql = recordsSql(query, pattern);
    return sql === undefined ? [] : this.ask(sql);
  }

  /** Reads records of a tenant within the bounds and up to the limit, a few ranges of the chain at a time. */
  private async own(query: RecordQuery & { tenant: string }): Promise<Row[]> {
    const rows: Row[] = [];
    let { from, to } = await this.places(query);
    for (let count = 2; rows.length < query.limit && from <= to; count = Math.min(2 * count, STRETCHES)) {
      const rest = { ...query, from, to, limit: query.limit - rows.length };
      const stretches = await this.stretches(rest, count);
      if (stretches.length > 0) rows.push(...(await this.ask<Row>(ownRecordsSql(rest, stretches))));
      if (stretches.length < count) break;
      const last = stretches[count - 1]!;
      if (query.order === "desc") to = last * TENANT_RANGE_RECORDS - 1;
      else from = (last + 1) * TENANT_RANGE_RECORDS;
    }
    return rows;
  }

  /** Returns the next ranges that have records of the tenant, or may have. */
  private async stretches(query: OwnQuery, count: number): Promise<number[]> {
    this.noted ??= Number(
      (await this.ask<{ stretch: string }>(FIRST_TENANT_RANGE_SQL))[0]?.stretch ?? Number.MAX_SAFE_INTEGER,
    );
    const [first, last] = [tenantRangeOf(query.from), tenantRangeOf(query.to)];
    const isUp = query.order !== "desc";
    const unnoted: number[] = [];
    for (
      let next = isUp ? first : Math.min(last, this.noted - 1);
      unnoted.length < count && next >= first && next <= last && next < this.noted;
      next += isUp ? 1 : -1
    )
      unnoted.push(next);
    if (last < this.noted || (isUp && unnoted.length === count)) return unnoted;
    const found = (await this.ask<{ stretch: string }>(tenantRangesSql(query, this.noted, count))).map(
      ({ stretch }) => Number(stretch),
    );
    return (isUp ? [...unnoted, ...found] : [...found, ...unnoted]).slice(0, count);
  }

  /** Returns the part of the chain that the query's bounds cover. */
  private async places({
    from = 0,
    to,
    since_ms,
    until_ms,
  }: RecordQuery): Promise<{ from: number; to: number }> {
    const [row] = await this.ask<{ low: string | null; high: string | null }>(
      seqBoundsSql(since_ms, until_ms),
    );
    const low = Number(row?.low ?? Number.MAX_SAFE_INTEGER);
    const high = Number(row?.high ?? -1);
    return { from: Math.max(0, Math.ceil(from), low), to: Math.min(Math.floor(to ?? high), high) };
  }
}

/** Scans candidates page by page, and returns the real matches. */
async function* walk(
  query: RecordQuery,
  read: Read,
  first = Math.max(query.limit, LOOK_AGAIN),
): AsyncGenerator<undefined, string[], undefined> {
  const found: string[] = [];
  const rest = { ...query, limit: first };
  for (;;) {
    const page = await read(rest);
    for (const { line } of page) {
      if (found.length < query.limit && matchesRecord(query, line)) found.push(line);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < rest.limit || found.length >= query.limit) return found;
    if (query.order === "desc") rest.to = Number(last.seq) - 1;
    else rest.from = Number(last.seq) + 1;
    rest.limit = Math.max(rest.limit, Math.min(2 * rest.limit, LOOK_AGAIN));
    yield undefined;
  }
}

async function firstOf(ways: readonly AsyncGenerator<undefined, string[], undefined>[]): Promise<string[]> {
  for (;;) {
    for (const way of ways) {
      const step = await way.next();
      if (step.done === true) return step.value;
    }
  }
}
