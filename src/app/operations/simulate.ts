/** Policy simulation: what a policy would have decided about the calls that were captured. */
import * as z from "zod";
import { LIMITS } from "../../kernel/limits.ts";
import { RULINGS } from "../../sandbox/past-call.ts";
import type { App } from "../app.ts";
import { type Caller, operation } from "../door/operation.ts";
import { nullable, runId, text } from "./schemas.ts";
import { simulateHistory } from "./simulate/jobs.ts";

const CAPTURE_OFF = "capture is off";
/** What was captured before it was turned off can still be judged by whoever holds it. */
export const captureFeature = ({ settings }: App, caller?: Caller): string | null =>
  settings.capture.enabled || caller?.at_the_data === true ? null : CAPTURE_OFF;

/** YAML as a request carries it; problems name it `policy`. */
export const policyYaml = text(LIMITS.body_bytes).meta({ description: "a policy, as YAML text" });
export const policySource = (yaml: string | undefined) =>
  yaml === undefined ? null : { text: yaml, file: "policy" };

export const ruling = z.enum(RULINGS);
const call = z.looseObject({
  run_id: z.string(),
  step: nullable(z.int()),
  tool: z.string(),
  old: z.strictObject({ decision: ruling, reasons: z.array(z.string()) }),
  new: z.looseObject({ decision: ruling, reasons: z.array(z.string()) }),
});
const count = z.int();

export const simulate = operation({
  id: "simulate",
  summary: "Judge the captured calls again under a policy, and compare with what was decided",
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
