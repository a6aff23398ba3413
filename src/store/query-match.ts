/** The semantics of list and record queries, for stores that check each candidate. */
import type { ListQuery, RecordQuery } from "../govern/port/store.ts";
import { type IndexEntry, type TableDocs, type TableName, tenantOfDoc } from "../govern/port/tables.ts";
import type { LedgerRecord } from "../ledger/record.ts";

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
  doc: TableDocs[TableName],
): boolean {
  return tenant === undefined || tenantOfDoc(table, doc) === tenant;
}

function compareKeys(sortA: number, keyA: string, sortB: number, keyB: string): number {
  if (sortA !== sortB) return sortA - sortB;
  return keyA === keyB ? 0 : compareCodePoints(keyA, keyB);
}

/** Compares by code point, which is also the byte order of UTF-8 and the order in databases. `<` on strings differs. */
function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left === right) continue;
    // Surrogates encode code points above all others, yet sort below U+E000 to U+FFFF.
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

/** Text that occurs exactly in the lines of a tenant: JSON escapes quotes inside values, and `ts_ms` comes last. */
export const tenantMark = (tenant: string): string => `,"tenant":${JSON.stringify(tenant)},`;

/** Returns a text as it appears in a ledger line, with JSON escapes. */
export const textInLine = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Checks whether a value in the line's record contains the lower-case text. Field names do not count. */
function hasText(text: string, line: string): boolean {
  // Rules most lines out without parsing them.
  if (!line.toLowerCase().includes(textInLine(text))) return false;
  return Object.values(JSON.parse(line))
    .flat()
    .some((value) => String(value).toLowerCase().includes(text));
}

/** Checks whether a ledger line matches the query, except for its bounds on `seq`. */
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
