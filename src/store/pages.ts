/** Reading the ledger from end to end, in pages, so that any ledger fits any memory. */
import type { Store } from "./port.ts";

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
