/** The trail of a run: the very bytes of its ledger records. */
import { z } from "zod";
import type { Store } from "../../store/port.ts";
import { readRun } from "../access.ts";
import { Content, operation } from "../operation.ts";
import { emptyQuery, runParams } from "../schemas.ts";

const PAGE = 1_000;

/** Ledger lines in order, in pages, so that any ledger fits any memory. */
export async function* ledgerLines(store: Store, run_id?: string): AsyncGenerator<string[]> {
  let from = 0;
  const { records } = await store.head();
  for (;;) {
    const lines = await store.records({ run_id, from, to: records - 1, limit: PAGE });
    if (lines.length === 0) return;
    yield lines;
    if (lines.length < PAGE) return;
    from = (JSON.parse(lines[lines.length - 1]!) as { seq: number }).seq + 1;
  }
}

export const exportRun = operation({
  id: "export_run",
  summary: "The ledger records of a run, as JSON lines or, on request, one JSON object",
  method: "GET",
  path: "/v1/runs/{id}/export",
  role: "auditor",
  params: runParams,
  query: emptyQuery,
  output: { content_types: ["application/x-ndjson", "application/json"] },
  status: 200,
  errors: { 404: "unknown run" },
  async run({ app, headers }, { params }) {
    const { store } = app.core;
    // A purged run has no working data left, but its trail stays.
    const [first] = await store.records({ run_id: params.id, limit: 1 });
    if (first === undefined) await readRun(app, params.id);
    if (prefersJson(headers.accept)) {
      const records: unknown[] = [];
      for await (const lines of ledgerLines(store, params.id)) for (const line of lines) records.push(JSON.parse(line));
      return { records };
    }
    return new Content("application/x-ndjson", asText(ledgerLines(store, params.id)));
  },
});

export async function* asText(pages: AsyncIterable<string[]>): AsyncGenerator<string> {
  for await (const lines of pages) yield `${lines.join("\n")}\n`;
}

function prefersJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const wanted = accept.split(",").map((part) => part.split(";")[0]!.trim().toLowerCase());
  return wanted.includes("application/json") && !wanted.includes("application/x-ndjson");
}

export const exportView = z.strictObject({ records: z.array(z.unknown()) });
