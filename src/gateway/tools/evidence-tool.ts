/** `svc.export_evidence`: returns a signed bundle of a run or of the entire ledger as a resource. */
import * as z from "zod";
import { SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { bundleLedger, bundleRun } from "../../operations/evidence/bundles.ts";
import type { DocumentContent } from "../../operations/pipeline/operation.ts";
import { runId } from "../../operations/schemas.ts";
import { OwnResult, ownTool, performOperation } from "./own-tool.ts";

/** Limit of a bundle in a tool result. More does not fit into a model's context or a client's memory. */
const MAX_CHARS = 8 * 1_048_576;

export const exportEvidence = ownTool({
  name: "svc.export_evidence",
  description:
    "Export a signed bundle of a run's records or, without run_id, of the entire ledger, for svc verify-bundle.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({ run_id: runId.optional() }),
  async run(call, { run_id }) {
    const bundle =
      run_id === undefined
        ? await performOperation(call, bundleLedger, {})
        : await performOperation(call, bundleRun, { run_id });
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

async function* textOf({ body }: DocumentContent): AsyncGenerator<string> {
  if (typeof body === "string") yield body;
  else if (body instanceof Uint8Array) yield new TextDecoder().decode(body);
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
