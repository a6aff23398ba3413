/** Lists and counts: the checkpoint's rows, merged with the changes in the overlays. */
import type { CountQuery, DocRow, ListQuery } from "../../govern/port/store.ts";
import type { TableDocs, TableName } from "../../govern/port/tables.ts";
import { compareRows, matchesList } from "../query-match.ts";
import type { BaseDocument, CheckpointReader, TableScan } from "./checkpoint/checkpoint.ts";
import { type JournalDoc, parseSlot } from "./lines/block.ts";
import type { OverlayStack } from "./overlay.ts";

interface Found {
  key: string;
  sort: number;
  slot?: JournalDoc;
  text?: string;
}

export function listDocuments<N extends TableName>(
  table: N,
  query: ListQuery,
  overlays: OverlayStack,
  checkpoint: CheckpointReader,
): DocRow<N>[] {
  return checkpoint.snapshot(() => merge(table, query, overlays, checkpoint));
}

function merge<N extends TableName>(
  table: N,
  query: ListQuery,
  overlays: OverlayStack,
  checkpoint: CheckpointReader,
): DocRow<N>[] {
  const compare = compareRows(query.order);
  const fresh: Found[] = [];
  for (const [key, slot] of knownOf(table, query.tenant, overlays)) {
    if (slot !== null && matchesList(query, slot, key)) fresh.push({ key, sort: slot.sort, slot });
  }
  fresh.sort(compare);
  const sources = [
    arraySource(fresh),
    ...walksOf(query).map((walk) => baseSource(table, walk, query, overlays, checkpoint)),
  ];
  const rows: DocRow<N>[] = [];
  while (rows.length < query.limit) {
    let first: Source | undefined;
    for (const source of sources) {
      const row = source.peek();
      if (row !== undefined && (first === undefined || compare(row, first.peek()!) < 0)) first = source;
    }
    if (first === undefined) break;
    const { key, sort, slot, text } = first.take();
    rows.push({ key, sort, doc: (slot === undefined ? JSON.parse(text!) : parseSlot(slot)) as TableDocs[N] });
  }
  return rows;
}

/** Returns the overlay documents of a table, or of one tenant in it. */
const knownOf = (table: TableName, tenant: string | undefined, overlays: OverlayStack) =>
  tenant === undefined ? overlays.table(table) : overlays.tableOf(table, tenant);

interface Source {
  peek(): Found | undefined;
  take(): Found;
}

function arraySource(rows: readonly Found[]): Source {
  let at = 0;
  return { peek: () => rows[at], take: () => rows[at++]! };
}

/** Builds one scan per requested state, so that each follows an index. */
function walksOf(query: ListQuery): TableScan[] {
  const tags =
    query.tag === undefined || typeof query.tag === "string" ? [query.tag] : [...new Set(query.tag)];
  const { owner, tenant, from, to } = query;
  return tags.map((tag) => ({ owner, tag, tenant, from, to, order: query.order ?? "asc" }));
}

const PAGE = 64;

/** Rows of the checkpoint that no overlay replaces, one page at a time. */
function baseSource(
  table: TableName,
  walk: TableScan,
  query: ListQuery,
  overlays: OverlayStack,
  checkpoint: CheckpointReader,
): Source {
  const size = Math.min(query.limit, 10_000) + PAGE;
  let rows: BaseDocument[] = [];
  let at = 0;
  let after = query.after;
  let done = false;
  const fill = (): void => {
    while (at >= rows.length && !done) {
      const page = checkpoint.page(table, walk, after, size);
      const last = page[page.length - 1];
      done = page.length < size;
      if (last !== undefined) after = { sort: last.sort, key: last.key };
      rows = page.filter(({ key }) => overlays.get(table, key) === undefined);
      at = 0;
    }
  };
  return {
    peek: () => {
      fill();
      return rows[at];
    },
    take: () => rows[at++]!,
  };
}

export function countDocuments(
  table: TableName,
  query: CountQuery,
  overlays: OverlayStack,
  checkpoint: CheckpointReader,
): number {
  const matches = (entry: { owner: string; tag: string }): boolean =>
    (query.owner === undefined || entry.owner === query.owner) &&
    (query.tag === undefined || entry.tag === query.tag);
  return checkpoint.snapshot(() => {
    const { tenant } = query;
    const known = new Set<string>(tenant === undefined ? [] : overlays.replacedOf(table, tenant));
    let count = checkpoint.count(table, query);
    for (const [key, slot] of knownOf(table, tenant, overlays)) {
      known.add(key);
      if (slot !== null && matches(slot)) count++;
    }
    if (known.size === 0) return count;
    return count - checkpoint.entries(table, [...known], tenant).filter(matches).length;
  });
}
