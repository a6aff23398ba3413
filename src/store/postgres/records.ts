/**
 * Searches of the ledger. What one statement can tell is asked in one; the rest is looked through page by page, so that no
 * statement takes longer than a read may.
 */
import type pg from "pg";
import type { RecordQuery } from "../../port/store.ts";
import { matchesRecord } from "../query.ts";
import { likePattern } from "./like.ts";
import { ownRecordsSql, recordsSql, type Sql } from "./queries.ts";

/** How many lines to look through at a time when SQL alone cannot tell. */
const LOOK_AGAIN = 500;
/** How many records of everybody a statement looks at for those of one tenant. */
const UNNOTED = 20_000;

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
    const like = query.q === undefined ? undefined : likePattern(query.q);
    if (query.q !== undefined && like === undefined) return [];
    const { tenant, run_id, event, actor, tool } = query;
    // A run is one tenant's.
    if (tenant === undefined || run_id !== undefined) {
      const page: Read = (rest) => this.page(rest, like?.pattern);
      if (like === undefined || like.exact) return (await page(query)).map(({ line }) => line);
      return firstOf([walk(query, page)]);
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

  /** All records of a tenant within the bounds, as far as the limit goes. */
  private async own(query: RecordQuery & { tenant: string }): Promise<Row[]> {
    const begin = await this.notedFrom();
    const from = Math.max(query.from ?? 0, begin);
    if (begin === 0) return this.ask(ownRecordsSql({ ...query, from }));
    const rows: Row[] = [];
    const noted = async () =>
      rows.push(
        ...(await this.ask<Row>(ownRecordsSql({ ...query, from, limit: query.limit - rows.length }))),
      );
    if (query.order === "desc") await noted();
    await this.unnoted(query, begin - 1, rows);
    if (query.order !== "desc") await noted();
    return rows;
  }

  /** Adds what lies in the records that are older than the notes of whose they are, a stretch at a time. */
  private async unnoted(query: RecordQuery & { tenant: string }, last: number, rows: Row[]): Promise<void> {
    const { tenant, order, since_ms, until_ms } = query;
    const low = Math.max(0, query.from ?? 0);
    const high = Math.min(last, query.to ?? last);
    for (let done = 0; done <= high - low && rows.length < query.limit; done += UNNOTED) {
      const [from, to] =
        order === "desc"
          ? [Math.max(low, high - done - UNNOTED + 1), high - done]
          : [low + done, Math.min(high, low + done + UNNOTED - 1)];
      const part = { tenant, order, since_ms, until_ms, from, to, limit: query.limit - rows.length };
      rows.push(...(await this.page(part, undefined)));
    }
  }

  /** The first record of which the tables know whose it is. */
  private async notedFrom(): Promise<number> {
    this.noted ??= Number(
      (
        await this.ask<{ n: string }>({
          text: "SELECT first_seq AS n FROM svc_tenants WHERE tenant = ''",
          values: [],
        })
      )[0]?.n ?? Number.MAX_SAFE_INTEGER,
    );
    return this.noted;
  }
}

/** Takes candidates page by page, and ends with those that do answer. */
async function* walk(query: RecordQuery, read: Read): AsyncGenerator<undefined, string[], undefined> {
  const found: string[] = [];
  const rest = { ...query, limit: Math.max(query.limit, LOOK_AGAIN) };
  for (;;) {
    const page = await read(rest);
    for (const { line } of page) {
      if (found.length < query.limit && matchesRecord(query, line)) found.push(line);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < rest.limit || found.length >= query.limit) return found;
    if (query.order === "desc") rest.to = Number(last.seq) - 1;
    else rest.from = Number(last.seq) + 1;
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
