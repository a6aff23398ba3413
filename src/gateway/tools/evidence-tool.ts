/** `svc.export_evidence`: a signed bundle of a run or of the whole ledger, as a resource in the answer. */
import * as z from "zod";
import type { Content } from "../../app/door/operation.ts";
import { bundleLedger, bundleRun } from "../../app/operations/bundles.ts";
import { runId } from "../../app/operations/schemas.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { OwnResult, operate, ownTool } from "./own-tool.ts";

/** A model's context is no place for more, and neither is a client's memory. */
const MAX_CHARS = 8 * 1_048_576;

export const exportEvidence = ownTool({
  name: "svc.export_evidence",
  description:
    "Export a signed bundle of a run's records, or of the whole ledger without run_id, for svc verify-bundle.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({ run_id: runId.optional() }),
  async run(call, { run_id }) {
    const bundle =
      run_id === undefined
        ? await operate(call, bundleLedger, {})
        : await operate(call, bundleRun, { run_id });
    const parts: string[] = [];
    let size = 0;
    for await (const part of textOf(bundle)) {
      parts.push(part);
      size += part.length;
      if (size > MAX_CHARS)
        throw new SvcError(
          "too_large",
          "the bundle is too large for a tool result; use svc bundle or GET /v1/ledger/bundle",
        );
    }
    return new OwnResult(bundleResult(run_id, parts.join("")));
  },
});

async function* textOf({ body }: Content): AsyncGenerator<string> {
  if (typeof body === "string") yield body;
  else for await (const part of body as AsyncIterable<string>) yield part;
}

function bundleResult(run_id: string | undefined, bundle: string): JsonObject {
  const { kind, count, head, tree, key_id, signature } = JSON.parse(bundle) as JsonObject;
  const uri = run_id === undefined ? "svc://bundle/ledger" : `svc://bundle/run/${run_id}`;
  const summary = { kind, run_id: run_id ?? null, count, head, tree, key_id, signature } as JsonObject;
  return {
    content: [
      { type: "text", text: JSON.stringify(summary) },
      { type: "resource", resource: { uri, mimeType: "application/json", text: bundle } },
    ],
    structuredContent: summary,
  };
}
