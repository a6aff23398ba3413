/** Reading the ledger and lists from end to end, in pages, so that whatever is there fits any memory. */
import type { DocRow, ListQuery, Store } from "./store.ts";
import type { TableName } from "./tables.ts";

const PAGE = 1_000;

/** Lines in order, up to where the ledger stood when the reading began. */
export async function* ledgerPages(store: Store, run_id?: string): AsyncGenerator<string[]> {
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

/** A list, page by page. */
export async function* rowPages<N extends TableName>(
  store: Pick<Store, "list">,
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

/** Every document of a list, one after the other. */
export async function* allRows<N extends TableName>(
  store: Pick<Store, "list">,
  table: N,
  query: PageQuery = {},
): AsyncGenerator<DocRow<N>> {
  for await (const rows of rowPages(store, table, query)) yield* rows;
}
