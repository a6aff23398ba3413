/** Policy simulation: what a policy would have decided about the calls that were captured. */
import { z } from "zod";
import { LIMITS } from "../../kernel/limits.ts";
import { RULINGS } from "../../sandbox/past-call.ts";
import type { App } from "../app.ts";
import { operation } from "../operation.ts";
import { reportBody, simulateHistory } from "../sandbox/jobs.ts";
import { emptyQuery, noParams, runId, text } from "../schemas.ts";

const CAPTURE_OFF = "capture is off";
export const captureFeature = ({ settings }: App): string | null =>
  settings.capture.enabled ? null : CAPTURE_OFF;

/** YAML as a request carries it; problems name it `policy`. */
export const policyYaml = text(LIMITS.body_bytes).meta({ description: "a policy, as YAML text" });
export const policyText = (yaml: string | undefined) =>
  yaml === undefined ? null : { text: yaml, file: "policy" };

export const ruling = z.enum(RULINGS);
const call = z.looseObject({
  run_id: z.string(),
  step: z.union([z.int(), z.null()]),
  tool: z.string(),
  old: z.strictObject({ decision: ruling, reasons: z.array(z.string()) }),
  new: z.looseObject({ decision: ruling, reasons: z.array(z.string()) }),
});
const count = z.int();

export const simulate = operation({
  id: "simulate",
  summary: "Judge the captured calls again under a policy, and compare with what was decided",
  method: "POST",
  path: "/v1/simulate",
  role: "operator",
  params: noParams,
  query: emptyQuery,
  body: z.strictObject({
    policy: policyYaml.optional(),
    run_id: runId.optional(),
    since: z.string().max(64).optional(),
  }),
  output: z.strictObject({
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
  status: 200,
  feature: captureFeature,
  errors: { 404: "capture is off", 429: "too many simulations are under way" },
  async run({ app, signal }, { body }) {
    const { policy, run_id, since } = body;
    return reportBody(await simulateHistory(app, { policy: policyText(policy), run_id, since }, signal));
  },
});
