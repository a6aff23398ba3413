/** Reading the ledger and lists from end to end, in pages, so that whatever is there fits any memory. */
import type { ListQuery, Row, Store } from "./port.ts";
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

/** Every document of a list, page by page. */
export async function* allRows<N extends TableName>(
  store: Pick<Store, "list">,
  table: N,
  query: Omit<ListQuery, "after" | "limit"> & { page?: number } = {},
): AsyncGenerator<Row<N>> {
  const { page = PAGE, ...rest } = query;
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list(table, { ...rest, after, limit: page });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < page) return;
    after = { sort: last.sort, key: last.key };
  }
}
