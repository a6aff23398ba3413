/** Captured calls: redacted arguments and results. Only the local command line can read them. */

import * as z from "zod";
import { capturedPages, purgeCaptures } from "../../capture/captured-calls.ts";
import { parseSince } from "../../kernel/duration.ts";
import type { HistoricCall } from "../../simulate/recorded-call.ts";
import type { ServiceApp } from "../app.ts";
import { type ApiCaller, DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { suggestPolicy } from "../simulate/suggest.ts";

const atTheData = (_: unknown, caller?: ApiCaller): string | null =>
  caller?.at_the_data === true
    ? null
    : "captured calls can be read and purged only with svc on the server's data";

export const listCaptures = defineOperation({
  id: "list_captures",
  summary: "List unexpired captured calls, oldest first, as JSON lines",
  role: "operator",
  input: z.strictObject({
    run_id: z.string().optional(),
    tool: z.string().optional(),
    since: z.string().optional(),
  }),
  output: { content_types: ["application/x-ndjson"] },
  feature: atTheData,
  async run({ app: { core } }, { since, ...query }) {
    const now = core.env.now();
    const since_ms = since === undefined ? undefined : parseSince(since, now, "--since");
    return new DocumentContent(
      "application/x-ndjson",
      linesOf(capturedPages(core.store, { ...query, since_ms }, now)),
    );
  },
});

/** Unexpired captured calls of a run, for the local command line. */
export function capturedCallsOf(
  { core }: Pick<ServiceApp, "core">,
  run_id: string,
): AsyncIterable<HistoricCall[]> {
  return capturedPages(core.store, { run_id }, core.env.now());
}

async function* linesOf(pages: AsyncIterable<HistoricCall[]>): AsyncGenerator<string> {
  for await (const calls of pages)
    yield calls.map((call) => `${JSON.stringify(captureView(call))}\n`).join("");
}

export type CaptureView = ReturnType<typeof captureView>;

/** Documented fields of a captured call. The result is present once the call has finished. */
function captureView(call: HistoricCall) {
  const { args, result, has_result, captured_ms, expires_ms, redacted } = call;
  return {
    run_id: call.run_id,
    step: call.step,
    tool: call.tool,
    actor: call.actor,
    ...(call.acting === undefined ? {} : { acting: call.acting }),
    ...(call.sandboxed === undefined ? {} : { sandboxed: call.sandboxed }),
    tenant: call.tenant,
    environment: call.environment,
    args,
    ...(has_result ? { result } : {}),
    decision: call.decision,
    verdict: call.verdict,
    reasons: call.reasons,
    outcome: call.outcome,
    manifest_version: call.manifest_version,
    risk_score: call.risk_score,
    captured_ms,
    expires_ms,
    redacted,
  };
}

export const purgeCapturedCalls = defineOperation({
  id: "purge_captures",
  summary: "Delete expired captured calls, or all of one run",
  role: "admin",
  input: z.strictObject({ run_id: z.string().optional() }),
  output: z.strictObject({ removed: z.int() }),
  feature: atTheData,
  async run({ app: { core } }, { run_id }) {
    const which = run_id === undefined ? { expired_at_ms: core.env.now() } : { run_id };
    return { removed: await purgeCaptures(core.store, which) };
  },
});

export const suggestDraftPolicy = defineOperation({
  id: "suggest_policy",
  summary: "Draft a policy from the captured calls, with the evidence for each line; changes nothing",
  role: "operator",
  input: z.strictObject({ since: z.string(), actor: z.string().optional() }),
  output: { content_types: ["application/yaml"] },
  errors: { not_found: "no captured calls to draft from" },
  feature: atTheData,
  async run({ app }, { since, actor }) {
    const since_ms = parseSince(since, app.core.env.now(), "--since");
    return new DocumentContent("application/yaml", await suggestPolicy(app, { since_ms, actor }));
  },
});
