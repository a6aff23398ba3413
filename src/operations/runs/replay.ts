/** Replays a captured run in the sandbox, unchanged and with changes. */
import * as z from "zod";
import type { JsonValue } from "../../kernel/json/json.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { anyJson, boundedText, runId, toolSchema } from "../schemas.ts";
import { replayRun } from "../simulate/jobs.ts";
import { policySource, policyYaml, previewDecision } from "../simulate/simulate.ts";

const step = z.int().min(0, "must be a step number");
const change = z.strictObject({
  step: nullableSchema(step).optional(),
  tool: nullableSchema(toolSchema).optional(),
  path: boundedText(512).meta({ description: "such as $args.amount" }),
  value: anyJson,
});

const replayed = z.looseObject({
  step: nullableSchema(z.int()),
  tool: z.string(),
  decision: previewDecision,
  reasons: z.array(z.string()),
  recorded: z.strictObject({ decision: previewDecision, reasons: z.array(z.string()) }),
});
const side = z.looseObject({ decision: previewDecision, reasons: z.array(z.string()) });
const planShape = z.strictObject({
  run_id: z.string(),
  actions: z.array(z.looseObject({ step: z.int(), tool: z.string(), kind: z.string() })),
  fully_reversible: z.boolean(),
});

export const replayCapturedRun = defineOperation({
  id: "replay",
  summary: "Replay a captured run in the sandbox, as recorded and with changes",
  role: "operator",
  input: z.strictObject({
    run_id: runId,
    policy: policyYaml.optional(),
    changes: z.array(change).max(1_000, "at most 1000 changes").optional(),
  }),
  output: {
    text_of: z.strictObject({
      baseline: z.array(replayed),
      variant: z.array(replayed),
      differences: z.array(z.looseObject({ tool: z.string(), baseline: side, variant: side })),
      baseline_plan: planShape,
      variant_plan: planShape,
    }),
  },
  errors: {
    not_found: "unknown run, or one with no captured calls",
    too_many: "too many simulations are under way",
  },
  run_of: ({ run_id }) => run_id,
  async run({ app, signal }, { run_id, policy, changes: wanted }) {
    const changes = (wanted ?? []).map(({ step, tool, path, value }) => ({
      step: step ?? null,
      tool: tool ?? null,
      path,
      value: value as JsonValue,
    }));
    const input = { run_id, policy: policySource(policy), changes };
    return replayRun(app, input, signal);
  },
});
