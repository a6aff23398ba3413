/** Reads the ledger and whole lists page by page, so that any size fits in memory. */
import type { DocRow, ListQuery, StateStore } from "./store.ts";
import type { TableName } from "./tables.ts";

const PAGE = 1_000;

/** Yields ledger lines in order, up to the end of the ledger at the start of the read. */
export async function* ledgerPages(store: StateStore, run_id?: string): AsyncGenerator<string[]> {
  const { records } = await store.head();
  let from = 0;
  while (from < records) {
    const lines = await store.records({ run_id, from, to: records - 1, limit: PAGE });
    if (lines.length === 0) return;
    yield lines;
    if (lines.length < PAGE) return;
    from =
      run_id === undefined
        ? from + lines.length
        : (JSON.parse(lines[lines.length - 1]!) as { seq: number }).seq + 1;
  }
}

type PageQuery = Omit<ListQuery, "limit"> & { page?: number };

/** Yields the rows of a list, page by page. */
export async function* rowPages<N extends TableName>(
  store: Pick<StateStore, "list">,
  table: N,
  { page = PAGE, ...query }: PageQuery = {},
): AsyncGenerator<DocRow<N>[]> {
  let { after } = query;
  for (;;) {
    const rows = await store.list(table, { ...query, after, limit: page });
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < page) return;
    after = { sort: last.sort, key: last.key };
  }
}

/** Yields every row of a list. */
export async function* allRows<N extends TableName>(
  store: Pick<StateStore, "list">,
  table: N,
  query: PageQuery = {},
): AsyncGenerator<DocRow<N>> {
  for await (const rows of rowPages(store, table, query)) yield* rows;
}
