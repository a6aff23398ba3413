/** The trail of a run: the very bytes of its ledger records. */
import { ledgerPages } from "../../store/pages.ts";
import { readRun } from "../access.ts";
import { Content, operation } from "../operation.ts";
import { emptyQuery, runParams } from "../schemas.ts";

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
      for await (const lines of ledgerPages(store, params.id))
        for (const line of lines) records.push(JSON.parse(line));
      return { records };
    }
    return new Content("application/x-ndjson", asText(ledgerPages(store, params.id)));
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
