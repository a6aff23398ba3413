/**
 * The SQL of lists and record searches. Each is put together from the filters that were asked for, so
 * that the planner sees plain comparisons on indexed columns and reads no more than the page it returns.
 */
import type { ListQuery, RecordQuery } from "../port.ts";
import type { TableName } from "../tables.ts";
import { toText } from "./encode.ts";
import { SLOT_MS } from "./rounds.ts";

export interface Sql {
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

  toString(): string {
    return this.conditions.length === 0 ? "" : `WHERE ${this.conditions.join(" AND ")}`;
  }
}

/** Undefined when nothing can match. */
export function listSql(table: TableName, query: ListQuery): Sql | undefined {
  const where = new Where();
  const [more, direction] = query.order === "desc" ? ["<", "DESC"] : [">", "ASC"];
  where.add(`tbl = ${where.value(table)}`);
  ownedBy(where, query.owner);
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

export function countSql(
  table: TableName,
  query: { owner?: string | undefined; tag?: string | undefined },
): Sql {
  const where = new Where();
  where.add(`tbl = ${where.value(table)}`);
  ownedBy(where, query.owner);
  where.when(query.tag, (p) => named("tag", query.tag, p), toText);
  return { text: `SELECT count(*) AS n FROM svc_docs ${where}`, values: where.values };
}

/** `pattern` is the LIKE pattern of `q`, see like.ts. Undefined when nothing can match. */
export function recordsSql(query: RecordQuery, pattern: string | undefined): Sql | undefined {
  const where = new Where();
  where.when(
    query.from,
    (p) => `seq >= ${p}`,
    (seq) => whole(Math.ceil(seq)),
  );
  where.when(
    query.to,
    (p) => `seq <= ${p}`,
    (seq) => whole(Math.floor(seq)),
  );
  where.when(query.run_id, (p) => `run_id = ${p}`, toText);
  where.when(query.actor, (p) => `actor = ${p}`, toText);
  where.when(query.tool, (p) => `tool = ${p}`, toText);
  where.when(
    query.since_ms,
    (p) => `ts_ms >= ${p}`,
    (ms) => whole(Math.ceil(ms)),
  );
  where.when(
    query.until_ms,
    (p) => `ts_ms <= ${p}`,
    (ms) => whole(Math.floor(ms)),
  );
  // Where in the chain that time lies; without it a search for the last hour would begin at record 0.
  where.when(
    query.since_ms,
    (p) => `seq >= (SELECT min(first_seq) FROM svc_times WHERE slot >= ${p})`,
    slotOf,
  );
  where.when(
    query.until_ms,
    (p) => `seq <= (SELECT max(last_seq) FROM svc_times WHERE slot <= ${p})`,
    slotOf,
  );
  where.when(pattern, (p) => `line ILIKE ${p}`);
  const page = `ORDER BY seq ${query.order === "desc" ? "DESC" : "ASC"} LIMIT ${where.value(rows(query.limit))}`;
  const text = anyOf(where, "event", query.event, { columns: "seq, line", from: "svc_ledger", page });
  return text === undefined ? undefined : { text, values: where.values };
}

interface Select {
  columns: string;
  from: string;
  page: string;
}

/**
 * The select, restricted to one name or to several. Several are looked up one by one, each in its
 * own index order and no further than the page, and then merged: one index walk a name instead of a
 * walk over the whole table.
 */
function anyOf(
  where: Where,
  column: "tag" | "event",
  names: string | readonly string[] | undefined,
  { columns, from, page }: Select,
): string | undefined {
  const wanted = typeof names === "string" ? [names] : names === undefined ? undefined : [...new Set(names)];
  if (wanted?.length === 0) return undefined;
  if (wanted === undefined || wanted.length === 1) {
    const name = wanted?.[0];
    where.when(name, (p) => named(column, name, p), toText);
    return `SELECT ${columns} FROM ${from} ${where} ${page}`;
  }
  const list = where.value(wanted.map(toText));
  where.add(named(column, wanted.includes("") ? "" : wanted[0], "name"));
  return `SELECT ${columns} FROM unnest(${list}::text[]) AS names(name)
    CROSS JOIN LATERAL (SELECT ${columns} FROM ${from} ${where} ${page}) AS found ${page}`;
}

function ownedBy(where: Where, owner: string | undefined): void {
  where.when(owner, (p) => named("owner", owner, p), toText);
}

/** The indexes of owner and tag leave out the empty ones, and are used only when the query says that it does. */
function named(column: "owner" | "tag" | "event", name: string | undefined, parameter: string): string {
  const equals = `${column} = ${parameter}`;
  return column === "event" || name === "" ? equals : `${equals} AND ${column} <> ''`;
}

function slotOf(ms: number): number {
  return whole(Math.floor(ms / SLOT_MS));
}

function rows(limit: number): number {
  return Math.max(0, whole(Math.floor(limit)));
}

/** A bound such as Infinity is a fine bound and no bigint. */
function whole(value: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(value, Number.MAX_SAFE_INTEGER));
}
