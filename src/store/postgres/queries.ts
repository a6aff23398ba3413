/**
 * The SQL of lists and record searches. Each is put together from the filters that were asked for, so
 * that the planner sees plain comparisons on indexed columns and reads no more than the page it returns.
 */
import type { CountQuery, ListQuery, RecordQuery } from "../../port/store.ts";
import type { TableName } from "../../port/tables.ts";
import { toText } from "../key-text.ts";
import { tenantMark } from "../query.ts";
import { SLOT_MS } from "./rounds.ts";

export interface Sql {
  /** Of a statement that is worth keeping. */
  name?: string;
  text: string;
  values: unknown[];
}

/** Collects conditions and their parameters. */
class Where {
  readonly values: unknown[] = [];
  private readonly conditions: string[] = [];

  value(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  add(condition: string): void {
    this.conditions.push(condition);
  }

  /** Adds the condition unless the value is undefined. */
  when<T>(
    value: T | undefined,
    condition: (parameter: string) => string,
    stored: (value: T) => unknown = (v) => v,
  ): void {
    if (value !== undefined) this.add(condition(this.value(stored(value))));
  }

  /** The clause, with one condition more where there is one. */
  clause(...more: string[]): string {
    const all = [...this.conditions, ...more];
    return all.length === 0 ? "" : `WHERE ${all.join(" AND ")}`;
  }
}

/** Undefined when nothing can match. */
export function listSql(table: TableName, query: ListQuery): Sql | undefined {
  const where = new Where();
  const [more, direction] = query.order === "desc" ? ["<", "DESC"] : [">", "ASC"];
  where.add(`tbl = ${where.value(table)}`);
  ownedBy(where, query.owner);
  ofTenant(where, query.tenant);
  where.when(query.from, (p) => `sort >= ${p}::double precision`);
  where.when(query.to, (p) => `sort <= ${p}::double precision`);
  if (query.after !== undefined) {
    const { sort, key } = query.after;
    where.add(`(sort, key) ${more} (${where.value(sort)}::double precision, ${where.value(toText(key))})`);
  }
  const page = `ORDER BY sort ${direction}, key ${direction} LIMIT ${where.value(rows(query.limit))}`;
  const text = anyOf(where, "tag", query.tag, { columns: "key, sort, doc", from: "svc_docs", page });
  return text === undefined ? undefined : { text, values: where.values };
}

export function countSql(table: TableName, query: CountQuery): Sql {
  const where = new Where();
  where.add(`tbl = ${where.value(table)}`);
  ownedBy(where, query.owner);
  ofTenant(where, query.tenant);
  where.when(query.tag, (p) => named("tag", query.tag, p), toText);
  return { text: `SELECT count(*) AS n FROM svc_docs ${where.clause()}`, values: where.values };
}

/** `pattern` is the LIKE pattern of `q`, see like.ts. Undefined when nothing can match. */
export function recordsSql(query: RecordQuery, pattern: string | undefined): Sql | undefined {
  const where = new Where();
  where.when(query.from, (p) => `seq >= ${p}`, up);
  where.when(query.to, (p) => `seq <= ${p}`, down);
  where.when(query.run_id, (p) => `run_id = ${p}`, toText);
  where.when(query.actor, (p) => `actor = ${p}`, toText);
  where.when(query.tool, (p) => `tool = ${p}`, toText);
  where.when(query.tenant, (p) => `strpos(line, ${p}) > 0`, tenantMark);
  where.when(query.since_ms, (p) => `ts_ms >= ${p}`, up);
  where.when(query.until_ms, (p) => `ts_ms <= ${p}`, down);
  // Where in the chain that time lies; without it a search for the last hour would begin at record 0.
  where.when(query.since_ms, (p) => `seq >= ${firstSince(p)}`, slot);
  where.when(query.until_ms, (p) => `seq <= ${lastUntil(p)}`, slot);
  where.when(pattern, (p) => `line ILIKE ${p}`);
  const page = `ORDER BY seq ${query.order === "desc" ? "DESC" : "ASC"} LIMIT ${where.value(rows(query.limit))}`;
  const text = anyOf(where, "event", query.event, { columns: "seq, line", from: "svc_ledger", page });
  return text === undefined ? undefined : { text, values: where.values };
}

const firstSince = (slot: string): string => `(SELECT min(first_seq) FROM svc_times WHERE slot >= ${slot})`;
const lastUntil = (slot: string): string => `(SELECT max(last_seq) FROM svc_times WHERE slot <= ${slot})`;

/** For every so many records the database notes whose are among them. */
export const STRETCH = 512;
export const stretchOf = (seq: number): number => Math.floor(seq / STRETCH);

/** The first stretch of which that is known. */
export const NOTED: Sql = { text: "SELECT stretch FROM svc_tenants WHERE tenant = ''", values: [] };

export type OwnQuery = RecordQuery & { tenant: string; from: number; to: number };

/** The first and the last record that there is, of that time where one is given. */
export function placesSql(since_ms: number | undefined, until_ms: number | undefined): Sql {
  const values: unknown[] = [];
  const low = since_ms === undefined ? "0" : firstSince(`$${values.push(slot(since_ms))}`);
  const last = "(SELECT records - 1 FROM svc_head WHERE one)";
  const high = until_ms === undefined ? last : lastUntil(`$${values.push(slot(until_ms))}`);
  return { text: `SELECT ${low} AS low, ${high} AS high`, values };
}

export function stretchesSql(query: OwnQuery, noted: number, count: number): Sql {
  const { tenant, from, to, order } = query;
  const text = `SELECT stretch FROM svc_tenants WHERE tenant = $1 AND stretch BETWEEN $2 AND $3
    ORDER BY stretch ${order === "desc" ? "DESC" : "ASC"} LIMIT $4`;
  return { text, values: [JSON.stringify(tenant), Math.max(noted, stretchOf(from)), stretchOf(to), count] };
}

/** Each stretch is walked by itself: joined freely, the planner may walk the whole chain instead. */
export function ownRecordsSql(
  { tenant, from, to, order, limit }: OwnQuery,
  stretches: readonly number[],
): Sql {
  const text = `
    SELECT l.seq, l.line FROM unnest($1::bigint[], $2::bigint[]) AS s(low, high), LATERAL (
      SELECT seq, line FROM svc_ledger WHERE seq BETWEEN low AND high ORDER BY seq LIMIT ${STRETCH}) AS l
    WHERE strpos(l.line, $3) > 0
    ORDER BY l.seq ${order === "desc" ? "DESC" : "ASC"} LIMIT $4`;
  const low = stretches.map((stretch) => Math.max(from, stretch * STRETCH));
  const high = stretches.map((stretch) => Math.min(to, (stretch + 1) * STRETCH - 1));
  return { text, values: [low, high, tenantMark(tenant), rows(limit)] };
}

interface Select {
  columns: string;
  from: string;
  page: string;
}

/**
 * The select, restricted to one name or to several. Several are looked up one by one, each in its own
 * index order and no further than the page, and then merged: short walks over an index instead of one
 * over the whole table. Each name is a parameter of its own, so that the planner knows how rare it is.
 */
function anyOf(
  where: Where,
  column: "tag" | "event",
  names: string | readonly string[] | undefined,
  { columns, from, page }: Select,
): string | undefined {
  if (names === undefined) return `SELECT ${columns} FROM ${from} ${where.clause()} ${page}`;
  const each = (typeof names === "string" ? [names] : [...new Set(names)]).map(
    (name) =>
      `SELECT ${columns} FROM ${from} ${where.clause(named(column, name, where.value(toText(name))))} ${page}`,
  );
  if (each.length < 2) return each[0];
  return `SELECT ${columns} FROM ((${each.join(") UNION ALL (")})) AS found ${page}`;
}

function ownedBy(where: Where, owner: string | undefined): void {
  where.when(owner, (p) => named("owner", owner, p), toText);
}

/** Documents of no tenant are not looked for so. */
function ofTenant(where: Where, tenant: string | undefined): void {
  where.when(tenant, (p) => named("tenant", tenant, p), toText);
}

/** The indexes of owner, tag and tenant leave out the empty ones, and are used only when the query says that it does. */
function named(
  column: "owner" | "tag" | "tenant" | "event",
  name: string | undefined,
  parameter: string,
): string {
  const equals = `${column} = ${parameter}`;
  return column === "event" || name === "" ? equals : `${equals} AND ${column} <> ''`;
}

/** A bound such as Infinity is a fine bound and no bigint. */
const whole = (n: number): number => Math.max(Number.MIN_SAFE_INTEGER, Math.min(n, Number.MAX_SAFE_INTEGER));
const up = (n: number): number => whole(Math.ceil(n));
const down = (n: number): number => whole(Math.floor(n));
const slot = (ms: number): number => down(ms / SLOT_MS);
const rows = (limit: number): number => Math.max(0, down(limit));
