/** Exports the trail of a run: the exact bytes of its ledger records. */
import * as z from "zod";
import { ledgerPages } from "../../govern/port/pages.ts";
import { readRun } from "../pipeline/access.ts";
import { DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { noFields, runId } from "../schemas.ts";

export const exportRun = defineOperation({
  id: "export_run",
  summary: "Export the ledger records of a run, as JSON lines or as one JSON object",
  role: "auditor",
  input: z.strictObject({ run_id: runId, format: z.enum(["ndjson", "json"]).optional() }),
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["application/x-ndjson", "application/json"] },
  errors: { not_found: "unknown run" },
  async run({ app }, { run_id, format }) {
    const { store } = app.core;
    // A purged run has no working data, but its trail remains.
    const [first] = await store.records({ run_id, limit: 1 });
    if (first === undefined) await readRun(app, run_id);
    if (format === "json") {
      const records: unknown[] = [];
      for await (const lines of ledgerPages(store, run_id))
        for (const line of lines) records.push(JSON.parse(line));
      return { records };
    }
    return new DocumentContent("application/x-ndjson", asText(ledgerPages(store, run_id)));
  },
});

export const exportLedger = defineOperation({
  id: "export_ledger",
  summary: "Export every record of the ledger, as JSON lines",
  role: "auditor",
  input: noFields,
  output: { content_types: ["application/x-ndjson"] },
  async run({ app }) {
    return new DocumentContent("application/x-ndjson", asText(ledgerPages(app.core.store)));
  },
});

async function* asText(pages: AsyncIterable<string[]>): AsyncGenerator<string> {
  for await (const lines of pages) yield `${lines.join("\n")}\n`;
}
