/** Policy simulation: how a policy would have decided the captured calls. */
import * as z from "zod";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { PREVIEW_DECISIONS } from "../../simulate/recorded-call.ts";
import type { ServiceApp } from "../app.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { boundedText, runId } from "../schemas.ts";
import { simulateHistory } from "./jobs.ts";

const CAPTURE_OFF = "capture is off";
/** With capture turned off, a local caller can still simulate the calls captured before. */
export const captureFeature = ({ settings }: ServiceApp, caller?: ApiCaller): string | null =>
  settings.capture.enabled || caller?.at_the_data === true ? null : CAPTURE_OFF;

/** YAML text in a request. Problems name it `policy`. */
export const policyYaml = boundedText(SERVICE_LIMITS.body_bytes).meta({
  description: "a policy, as YAML text",
});
export const policySource = (yaml: string | undefined) =>
  yaml === undefined ? null : { text: yaml, file: "policy" };

export const previewDecision = z.enum(PREVIEW_DECISIONS);
const call = z.looseObject({
  run_id: z.string(),
  step: nullableSchema(z.int()),
  tool: z.string(),
  old: z.strictObject({ decision: previewDecision, reasons: z.array(z.string()) }),
  new: z.looseObject({ decision: previewDecision, reasons: z.array(z.string()) }),
});
const count = z.int();

export const simulatePolicy = defineOperation({
  id: "simulate",
  summary: "Evaluate the captured calls under a policy, and compare with the recorded decisions",
  role: "operator",
  within_tenant: true,
  input: z.strictObject({
    policy: policyYaml.optional(),
    run_id: runId.optional(),
    since: z.string().max(64).optional(),
  }),
  output: {
    text_of: z.strictObject({
      summary: z.strictObject({
        calls: count,
        runs: count,
        unchanged: count,
        newly_blocked: count,
        newly_needs_approval: count,
        newly_allowed: count,
      }),
      changes: z.array(
        z.looseObject({ change: z.string(), by: z.array(z.string()), calls: count, runs: count }),
      ),
      newly_blocked: z.array(call),
      newly_needs_approval: z.array(call),
      newly_allowed: z.array(call),
      notes: z.array(z.string()),
    }),
  },
  feature: captureFeature,
  errors: { not_found: "capture is off", too_many: "too many simulations are under way" },
  async run({ app, signal }, { policy, run_id, since }) {
    return simulateHistory(app, { policy: policySource(policy), run_id, since }, signal);
  },
});
