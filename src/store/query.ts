/** What a list or record query means, for stores that answer it by looking at each candidate. */
import type { LedgerRecord } from "../ledger/record.ts";
import type { ListQuery, RecordQuery } from "../port/store.ts";
import { type IndexEntry, type TableName, type Tables, tenantOfDoc } from "../port/tables.ts";

export function matchesList(query: ListQuery, entry: IndexEntry, key: string): boolean {
  if (query.owner !== undefined && entry.owner !== query.owner) return false;
  if (query.tag !== undefined) {
    if (typeof query.tag === "string" ? entry.tag !== query.tag : !query.tag.includes(entry.tag))
      return false;
  }
  if (query.from !== undefined && entry.sort < query.from) return false;
  if (query.to !== undefined && entry.sort > query.to) return false;
  if (query.after === undefined) return true;
  const order = compareKeys(entry.sort, key, query.after.sort, query.after.key);
  return query.order === "desc" ? order < 0 : order > 0;
}

export function matchesTenant(
  { tenant }: Pick<ListQuery, "tenant">,
  table: TableName,
  doc: Tables[TableName],
): boolean {
  return tenant === undefined || tenantOfDoc(table, doc) === tenant;
}

function compareKeys(sortA: number, keyA: string, sortB: number, keyB: string): number {
  if (sortA !== sortB) return sortA - sortB;
  return keyA === keyB ? 0 : compareCodePoints(keyA, keyB);
}

/** By code point, which is also the byte order of UTF-8: databases sort so, `<` on strings does not. */
function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left === right) continue;
    // Surrogates stand for code points above everything else, yet lie below U+E000 to U+FFFF.
    const leftIsSurrogate = left >= 0xd800 && left <= 0xdfff;
    const rightIsSurrogate = right >= 0xd800 && right <= 0xdfff;
    if (leftIsSurrogate === rightIsSurrogate) return left - right;
    return leftIsSurrogate ? 1 : -1;
  }
  return a.length - b.length;
}

export function compareRows(order: "asc" | "desc" | undefined) {
  const sign = order === "desc" ? -1 : 1;
  return (a: { sort: number; key: string }, b: { sort: number; key: string }): number =>
    sign * compareKeys(a.sort, a.key, b.sort, b.key);
}

/** What the lines of a tenant have in them and no other: a quote inside a text is escaped, and `ts_ms` comes last. */
export const tenantMark = (tenant: string): string => `,"tenant":${JSON.stringify(tenant)},`;

/** A text as it stands in a line, with the escapes of JSON. */
export const textInLine = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Whether a value of the line's record has the text, which is in lower case; what its fields are called does not count. */
function hasText(text: string, line: string): boolean {
  // Most lines need not be parsed to see that they have not.
  if (!line.toLowerCase().includes(textInLine(text))) return false;
  return Object.values(JSON.parse(line))
    .flat()
    .some((value) => String(value).toLowerCase().includes(text));
}

/** Whether a ledger line answers the query, apart from its bounds on `seq`. */
export function matchesRecord(query: RecordQuery, line: string): boolean {
  if (query.tenant !== undefined && !line.includes(tenantMark(query.tenant))) return false;
  if (query.q !== undefined && !hasText(query.q.toLowerCase(), line)) return false;
  if (!hasFieldFilter(query)) return true;
  const record = JSON.parse(line) as LedgerRecord;
  if (query.run_id !== undefined && record.run_id !== query.run_id) return false;
  if (query.actor !== undefined && record.actor !== query.actor) return false;
  if (query.tool !== undefined && record.tool !== query.tool) return false;
  if (query.since_ms !== undefined && record.ts_ms < query.since_ms) return false;
  if (query.until_ms !== undefined && record.ts_ms > query.until_ms) return false;
  if (query.event === undefined) return true;
  return typeof query.event === "string" ? record.event === query.event : query.event.includes(record.event);
}

function hasFieldFilter(query: RecordQuery): boolean {
  return (
    query.run_id !== undefined ||
    query.actor !== undefined ||
    query.tool !== undefined ||
    query.event !== undefined ||
    query.since_ms !== undefined ||
    query.until_ms !== undefined
  );
}
