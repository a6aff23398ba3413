/** Speculation: runs several plans in the sandbox and ranks them before any is started. */
import * as z from "zod";
import type { JsonValue } from "../../kernel/json/json.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { SpeculatedCall } from "../../simulate/speculate.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, toolSchema } from "../schemas.ts";
import { speculatePlans } from "./jobs.ts";
import { policySource, policyYaml } from "./simulate.ts";

const plannedCall = z.strictObject({
  tool: toolSchema,
  args: z.unknown().optional(),
  result: z.unknown().optional(),
});
const plan = z.strictObject({
  name: boundedText(256),
  calls: z.array(plannedCall).max(10_000, "at most 10000 calls"),
});
/** Plans in a plans file or a request. */
export const plansShape = z.array(plan).max(1_000, "at most 1000 plans");

function plansOf(plans: z.output<typeof plansShape>) {
  return plans.map(({ name, calls }) => ({
    name,
    calls: calls.map(({ tool, args, result }): SpeculatedCall => {
      const call = { tool, args: (args ?? {}) as JsonValue };
      return result === undefined ? call : { ...call, result: result as JsonValue };
    }),
  }));
}

const result = z.looseObject({
  name: z.string(),
  rank: z.number(),
  recommended: z.boolean(),
  blocked_at: nullableSchema(z.looseObject({ call: z.int(), tool: z.string() })),
  approvals: z.array(z.looseObject({ call: z.int(), tool: z.string(), quorum: z.int() })),
  highest_risk: z.int(),
  total_risk: z.int(),
  irreversible_tools: z.array(z.string()),
  residue: z.array(z.string()),
  fully_reversible: z.boolean(),
  rollback_plan: z.looseObject({ run_id: z.string(), fully_reversible: z.boolean() }),
  notes: z.array(z.string()),
});

export const speculateOnPlans = defineOperation({
  id: "speculate",
  summary: "Run plans in the sandbox and rank them, safest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    plans: plansShape,
    policy: policyYaml.optional(),
    actor: boundedText(256).optional(),
  }),
  output: {
    text_of: z.strictObject({ recommended: nullableSchema(z.string()), plans: z.array(result) }),
  },
  errors: { too_many: "too many simulations are under way" },
  async run({ app, principal, signal }, { plans, policy, actor }) {
    const input = { plans: plansOf(plans), policy: policySource(policy), actor: actor ?? principal.name };
    return speculatePlans(app, input, signal);
  },
});
