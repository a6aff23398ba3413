/**
 * SQL for lists and record searches, built from the given filters. So the planner sees plain comparisons on indexed
 * columns and reads no more than the requested page.
 */
import type { CountQuery, ListQuery, RecordQuery } from "../../govern/port/store.ts";
import type { TableName } from "../../govern/port/tables.ts";
import { toKeyText } from "../key-text.ts";
import { tenantMark } from "../query-match.ts";
import { SLOT_MS } from "./round-trips.ts";

export interface SqlQuery {
  /** The name of a prepared statement. */
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

  /** Returns the WHERE clause, with further conditions if given. */
  clause(...more: string[]): string {
    const all = [...this.conditions, ...more];
    return all.length === 0 ? "" : `WHERE ${all.join(" AND ")}`;
  }
}

/** Returns the SQL of a list, or undefined if nothing can match. */
export function listSql(table: TableName, query: ListQuery): SqlQuery | undefined {
  const where = new Where();
  const [more, direction] = query.order === "desc" ? ["<", "DESC"] : [">", "ASC"];
  where.add(`tbl = ${where.value(table)}`);
  ownedBy(where, query.owner);
  ofTenant(where, query.tenant);
  where.when(query.from, (p) => `sort >= ${p}::double precision`);
  where.when(query.to, (p) => `sort <= ${p}::double precision`);
  if (query.after !== undefined) {
    const { sort, key } = query.after;
    where.add(`(sort, key) ${more} (${where.value(sort)}::double precision, ${where.value(toKeyText(key))})`);
  }
  const page = `ORDER BY sort ${direction}, key ${direction} LIMIT ${where.value(rows(query.limit))}`;
  const text = anyOf(where, "tag", query.tag, { columns: "key, sort, doc", from: "svc_docs", page });
  return text === undefined ? undefined : { text, values: where.values };
}

export function countSql(table: TableName, query: CountQuery): SqlQuery {
  const where = new Where();
  where.add(`tbl = ${where.value(table)}`);
  ownedBy(where, query.owner);
  ofTenant(where, query.tenant);
  where.when(query.tag, (p) => named("tag", query.tag, p), toKeyText);
  return { text: `SELECT count(*) AS n FROM svc_docs ${where.clause()}`, values: where.values };
}

/**
 * Returns the SQL of a record search, or undefined if nothing can match. `pattern` is the LIKE pattern of `q`, see
 * like.ts.
 */
export function recordsSql(query: RecordQuery, pattern: string | undefined): SqlQuery | undefined {
  const where = new Where();
  where.when(query.from, (p) => `seq >= ${p}`, up);
  where.when(query.to, (p) => `seq <= ${p}`, down);
  where.when(query.run_id, (p) => `run_id = ${p}`, toKeyText);
  where.when(query.actor, (p) => `actor = ${p}`, toKeyText);
  where.when(query.tool, (p) => `tool = ${p}`, toKeyText);
  where.when(query.tenant, (p) => `strpos(line, ${p}) > 0`, tenantMark);
  where.when(query.since_ms, (p) => `ts_ms >= ${p}`, up);
  where.when(query.until_ms, (p) => `ts_ms <= ${p}`, down);
  // The position of that time in the chain. Without it, a search for the last hour would begin at record 0.
  where.when(query.since_ms, (p) => `seq >= ${firstSince(p)}`, slot);
  where.when(query.until_ms, (p) => `seq <= ${lastUntil(p)}`, slot);
  where.when(pattern, (p) => `line ILIKE ${p}`);
  const page = `ORDER BY seq ${query.order === "desc" ? "DESC" : "ASC"} LIMIT ${where.value(rows(query.limit))}`;
  const text = anyOf(where, "event", query.event, { columns: "seq, line", from: "svc_ledger", page });
  return text === undefined ? undefined : { text, values: where.values };
}

const firstSince = (slot: string): string => `(SELECT min(first_seq) FROM svc_times WHERE slot >= ${slot})`;
const lastUntil = (slot: string): string => `(SELECT max(last_seq) FROM svc_times WHERE slot <= ${slot})`;

/**
 * The number of records in a range of the tenant index. The database stores which tenants have records in each range.
 */
export const TENANT_RANGE_RECORDS = 512;
export const tenantRangeOf = (seq: number): number => Math.floor(seq / TENANT_RANGE_RECORDS);

/** Reads the first range that the tenant index covers. */
export const FIRST_TENANT_RANGE_SQL: SqlQuery = {
  text: "SELECT stretch FROM svc_tenants WHERE tenant = ''",
  values: [],
};

export type OwnQuery = RecordQuery & { tenant: string; from: number; to: number };

/** Reads the first and the last record, optionally within a time span. */
export function seqBoundsSql(since_ms: number | undefined, until_ms: number | undefined): SqlQuery {
  const values: unknown[] = [];
  const low = since_ms === undefined ? "0" : firstSince(`$${values.push(slot(since_ms))}`);
  const last = "(SELECT records - 1 FROM svc_head WHERE one)";
  const high = until_ms === undefined ? last : lastUntil(`$${values.push(slot(until_ms))}`);
  return { text: `SELECT ${low} AS low, ${high} AS high`, values };
}

export function tenantRangesSql(query: OwnQuery, noted: number, count: number): SqlQuery {
  const { tenant, from, to, order } = query;
  const text = `SELECT stretch FROM svc_tenants WHERE tenant = $1 AND stretch BETWEEN $2 AND $3
    ORDER BY stretch ${order === "desc" ? "DESC" : "ASC"} LIMIT $4`;
  return {
    text,
    values: [JSON.stringify(tenant), Math.max(noted, tenantRangeOf(from)), tenantRangeOf(to), count],
  };
}

/** Reads a tenant's records range by range. With a plain join, the planner may scan the whole chain instead. */
export function ownRecordsSql(
  { tenant, from, to, order, limit }: OwnQuery,
  stretches: readonly number[],
): SqlQuery {
  const text = `
    SELECT l.seq, l.line FROM unnest($1::bigint[], $2::bigint[]) AS s(low, high), LATERAL (
      SELECT seq, line FROM svc_ledger WHERE seq BETWEEN low AND high ORDER BY seq LIMIT ${TENANT_RANGE_RECORDS}) AS l
    WHERE strpos(l.line, $3) > 0
    ORDER BY l.seq ${order === "desc" ? "DESC" : "ASC"} LIMIT $4`;
  const low = stretches.map((stretch) => Math.max(from, stretch * TENANT_RANGE_RECORDS));
  const high = stretches.map((stretch) => Math.min(to, (stretch + 1) * TENANT_RANGE_RECORDS - 1));
  return { text, values: [low, high, tenantMark(tenant), rows(limit)] };
}

interface Select {
  columns: string;
  from: string;
  page: string;
}

/**
 * Restricts the select to one name or several. For several names, it searches each in its own index order, no further
 * than the page, and merges the results: short index scans instead of a full table scan. Each name is a separate
 * parameter, so that the planner knows how rare it is.
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
      `SELECT ${columns} FROM ${from} ${where.clause(named(column, name, where.value(toKeyText(name))))} ${page}`,
  );
  if (each.length < 2) return each[0];
  return `SELECT ${columns} FROM ((${each.join(") UNION ALL (")})) AS found ${page}`;
}

function ownedBy(where: Where, owner: string | undefined): void {
  where.when(owner, (p) => named("owner", owner, p), toKeyText);
}

/** Adds the tenant condition. There is no search for documents without a tenant. */
function ofTenant(where: Where, tenant: string | undefined): void {
  where.when(tenant, (p) => named("tenant", tenant, p), toKeyText);
}

/**
 * The indexes of owner, tag and tenant exclude empty values, so the planner uses them only if the query excludes them,
 * too.
 */
function named(
  column: "owner" | "tag" | "tenant" | "event",
  name: string | undefined,
  parameter: string,
): string {
  const equals = `${column} = ${parameter}`;
  return column === "event" || name === "" ? equals : `${equals} AND ${column} <> ''`;
}

/** Clamps a bound such as Infinity, which is valid in a query but does not fit a bigint. */
const whole = (n: number): number => Math.max(Number.MIN_SAFE_INTEGER, Math.min(n, Number.MAX_SAFE_INTEGER));
const up = (n: number): number => whole(Math.ceil(n));
const down = (n: number): number => whole(Math.floor(n));
const slot = (ms: number): number => down(ms / SLOT_MS);
const rows = (limit: number): number => Math.max(0, down(limit));
