/**
 * Searches of the ledger. What one statement can tell is asked in one; the rest is looked through page by page, so that no
 * statement takes longer than a read may.
 */
import type pg from "pg";
import type { RecordQuery } from "../../port/store.ts";
import { matchesRecord } from "../query.ts";
import { likePattern } from "./like.ts";
import {
  NOTED,
  type OwnQuery,
  ownRecordsSql,
  placesSql,
  recordsSql,
  type Sql,
  STRETCH,
  stretchesSql,
  stretchOf,
} from "./queries.ts";

/** How many lines to look through at a time when SQL alone cannot tell. */
const LOOK_AGAIN = 500;
/** How many stretches of everybody's records a statement looks through for those of one tenant. */
const STRETCHES = 32;

interface Row extends pg.QueryResultRow {
  seq: string;
  line: string;
}
type Read = (query: RecordQuery) => Promise<Row[]>;

export class RecordSearch {
  private readonly ask: <R extends pg.QueryResultRow>(sql: Sql) => Promise<R[]>;
  private noted: number | undefined;

  constructor(ask: RecordSearch["ask"]) {
    this.ask = ask;
  }

  async records(query: RecordQuery): Promise<string[]> {
    const { tenant, run_id, event, actor, tool, q } = query;
    // A run is one tenant's.
    if (tenant === undefined || run_id !== undefined) {
      if (q === undefined) return (await this.page(query, undefined)).map(({ line }) => line);
      const pattern = likePattern(q);
      // Most of what the pattern finds does answer: no more than that is asked for at first.
      return firstOf([walk(query, (rest) => this.page(rest, pattern), query.limit)]);
    }
    // Along the tenant's records, and along those that have the field: whichever ends first has the answer, so neither
    // many records of its own nor many of its neighbours are walked through for a few.
    const ways = [walk(query, (rest) => this.own({ ...rest, tenant }))];
    if ((event ?? actor ?? tool) !== undefined)
      ways.push(walk(query, (rest) => this.page({ ...rest, tenant: undefined }, undefined)));
    return firstOf(ways);
  }

  private async page(query: RecordQuery, pattern: string | undefined): Promise<Row[]> {
    const sql = recordsSql(query, pattern);
    return sql === undefined ? [] : this.ask(sql);
  }

  /** All records of a tenant within the bounds, as far as the limit goes, a few stretches of the chain at a time. */
  private async own(query: RecordQuery & { tenant: string }): Promise<Row[]> {
    const rows: Row[] = [];
    let { from, to } = await this.places(query);
    for (let count = 2; rows.length < query.limit && from <= to; count = Math.min(2 * count, STRETCHES)) {
      const rest = { ...query, from, to, limit: query.limit - rows.length };
      const stretches = await this.stretches(rest, count);
      if (stretches.length > 0) rows.push(...(await this.ask<Row>(ownRecordsSql(rest, stretches))));
      if (stretches.length < count) break;
      const last = stretches[count - 1]!;
      if (query.order === "desc") to = last * STRETCH - 1;
      else from = (last + 1) * STRETCH;
    }
    return rows;
  }

  /** The next stretches that have records of the tenant, or may have. */
  private async stretches(query: OwnQuery, count: number): Promise<number[]> {
    this.noted ??= Number(
      (await this.ask<{ stretch: string }>(NOTED))[0]?.stretch ?? Number.MAX_SAFE_INTEGER,
    );
    const [first, last] = [stretchOf(query.from), stretchOf(query.to)];
    const isUp = query.order !== "desc";
    const unnoted: number[] = [];
    for (
      let next = isUp ? first : Math.min(last, this.noted - 1);
      unnoted.length < count && next >= first && next <= last && next < this.noted;
      next += isUp ? 1 : -1
    )
      unnoted.push(next);
    if (last < this.noted || (isUp && unnoted.length === count)) return unnoted;
    const found = (await this.ask<{ stretch: string }>(stretchesSql(query, this.noted, count))).map(
      ({ stretch }) => Number(stretch),
    );
    return (isUp ? [...unnoted, ...found] : [...found, ...unnoted]).slice(0, count);
  }

  /** Where in the chain that lies which the query asks for. */
  private async places({
    from = 0,
    to,
    since_ms,
    until_ms,
  }: RecordQuery): Promise<{ from: number; to: number }> {
    const [row] = await this.ask<{ low: string | null; high: string | null }>(placesSql(since_ms, until_ms));
    const low = Number(row?.low ?? Number.MAX_SAFE_INTEGER);
    const high = Number(row?.high ?? -1);
    return { from: Math.max(0, Math.ceil(from), low), to: Math.min(Math.floor(to ?? high), high) };
  }
}

/** Takes candidates page by page, and ends with those that do answer. */
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
