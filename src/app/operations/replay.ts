/** Replay: a captured run once more, as it was and with changes, without anything happening. */
import { z } from "zod";
import type { Json } from "../../kernel/json.ts";
import { operation } from "../operation.ts";
import { replayRun, reportBody } from "../sandbox/jobs.ts";
import { anyJson, emptyQuery, runParams, text, tool } from "../schemas.ts";
import { policyText, policyYaml, ruling } from "./simulate.ts";

const step = z.int().min(0, "must be a step number");
const change = z.strictObject({
  step: z.union([step, z.null()]).optional(),
  tool: z.union([tool, z.null()]).optional(),
  path: text(512).meta({ description: "such as $args.amount" }),
  value: anyJson,
});

const replayed = z.looseObject({
  step: z.union([z.int(), z.null()]),
  tool: z.string(),
  decision: ruling,
  reasons: z.array(z.string()),
  recorded: z.strictObject({ decision: ruling, reasons: z.array(z.string()) }),
});
const side = z.looseObject({ decision: ruling, reasons: z.array(z.string()) });
const planShape = z.strictObject({
  run_id: z.string(),
  actions: z.array(z.looseObject({ step: z.int(), tool: z.string(), kind: z.string() })),
  fully_reversible: z.boolean(),
});

export const replay = operation({
  id: "replay",
  summary: "Replay a captured run in the sandbox, as recorded and with changes",
  method: "POST",
  path: "/v1/runs/{id}/replay",
  role: "operator",
  params: runParams,
  query: emptyQuery,
  body: z.strictObject({
    policy: policyYaml.optional(),
    changes: z.array(change).max(1_000, "at most 1000 changes").optional(),
  }),
  output: z.strictObject({
    baseline: z.array(replayed),
    variant: z.array(replayed),
    differences: z.array(z.looseObject({ tool: z.string(), baseline: side, variant: side })),
    baseline_plan: planShape,
    variant_plan: planShape,
  }),
  status: 200,
  errors: { 404: "unknown run, or one with no captured calls", 429: "too many simulations are under way" },
  async run({ app, signal }, { params, body }) {
    const changes = (body.changes ?? []).map(({ step, tool, path, value }) => ({
      step: step ?? null,
      tool: tool ?? null,
      path,
      value: value as Json,
    }));
    const input = { run_id: params.id, policy: policyText(body.policy), changes };
    return reportBody(await replayRun(app, input, signal));
  },
});
