/** Captured calls: arguments and results, redacted. Only whoever holds the data reaches them, on the command line. */
import * as z from "zod";
import { capturedPages, purgeCaptures } from "../../capture/read.ts";
import { parseSince } from "../../kernel/duration.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import { type Caller, Content, operation } from "../door/operation.ts";
import { suggestPolicy } from "./simulate/suggest.ts";

const atTheData = (_: unknown, caller?: Caller): string | null =>
  caller?.at_the_data === true ? null : "captured calls are read and purged by svc, on the data themselves";

export const listCaptures = operation({
  id: "list_captures",
  summary: "The captured calls that have not expired, oldest first, as JSON lines",
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
    return new Content(
      "application/x-ndjson",
      linesOf(capturedPages(core.store, { ...query, since_ms }, now)),
    );
  },
});

async function* linesOf(pages: AsyncIterable<PastCall[]>): AsyncGenerator<string> {
  for await (const calls of pages)
    yield calls.map((call) => `${JSON.stringify(captureView(call))}\n`).join("");
}

export type CaptureView = ReturnType<typeof captureView>;

/** The documented fields; a result is there once the call has finished. */
function captureView(call: PastCall) {
  const { args, result, has_result, captured_ms, expires_ms, redacted } = call;
  return {
    run_id: call.run_id,
    step: call.step,
    tool: call.tool,
    actor: call.actor,
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

export const purge = operation({
  id: "purge_captures",
  summary: "Delete the captured calls that have expired, or all of one run",
  role: "admin",
  input: z.strictObject({ run_id: z.string().optional() }),
  output: z.strictObject({ removed: z.int() }),
  feature: atTheData,
  async run({ app: { core } }, { run_id }) {
    const which = run_id === undefined ? { expired_at_ms: core.env.now() } : { run_id };
    return { removed: await purgeCaptures(core.store, which) };
  },
});

export const suggest = operation({
  id: "suggest_policy",
  summary: "Draft a policy from the captured calls, with the evidence for each line; changes nothing",
  role: "operator",
  input: z.strictObject({ since: z.string(), actor: z.string().optional() }),
  output: { content_types: ["application/yaml"] },
  errors: { not_found: "no call to draft from was captured" },
  feature: atTheData,
  async run({ app }, { since, actor }) {
    const since_ms = parseSince(since, app.core.env.now(), "--since");
    return new Content("application/yaml", await suggestPolicy(app, { since_ms, actor }));
  },
});
