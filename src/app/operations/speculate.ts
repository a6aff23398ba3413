/** Speculation: several plans tried in the sandbox and ranked, before any of them is begun. */
import * as z from "zod";
import type { Json } from "../../kernel/json.ts";
import type { SpeculatedCall } from "../../sandbox/speculate.ts";
import { operation } from "../door/operation.ts";
import { nullable, text, tool } from "./schemas.ts";
import { speculatePlans } from "./simulate/jobs.ts";
import { policySource, policyYaml } from "./simulate.ts";

const plannedCall = z.strictObject({ tool, args: z.unknown().optional(), result: z.unknown().optional() });
const plan = z.strictObject({
  name: text(256),
  calls: z.array(plannedCall).max(10_000, "at most 10000 calls"),
});
/** A plans file and a request have the same plans. */
export const plansShape = z.array(plan).max(1_000, "at most 1000 plans");

function plansOf(plans: z.output<typeof plansShape>) {
  return plans.map(({ name, calls }) => ({
    name,
    calls: calls.map(({ tool, args, result }): SpeculatedCall => {
      const call = { tool, args: (args ?? {}) as Json };
      return result === undefined ? call : { ...call, result: result as Json };
    }),
  }));
}

const result = z.looseObject({
  name: z.string(),
  rank: z.number(),
  recommended: z.boolean(),
  blocked_at: nullable(z.looseObject({ call: z.int(), tool: z.string() })),
  approvals: z.array(z.looseObject({ call: z.int(), tool: z.string(), quorum: z.int() })),
  highest_risk: z.int(),
  total_risk: z.int(),
  irreversible_tools: z.array(z.string()),
  residue: z.array(z.string()),
  fully_reversible: z.boolean(),
  rollback_plan: z.looseObject({ run_id: z.string(), fully_reversible: z.boolean() }),
  notes: z.array(z.string()),
});

export const speculate = operation({
  id: "speculate",
  summary: "Try plans in the sandbox and rank them, the safest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    plans: plansShape,
    policy: policyYaml.optional(),
    actor: text(256).optional(),
  }),
  output: {
    text_of: z.strictObject({ recommended: nullable(z.string()), plans: z.array(result) }),
  },
  errors: { too_many: "too many simulations are under way" },
  async run({ app, principal, signal }, { plans, policy, actor }) {
    const input = { plans: plansOf(plans), policy: policySource(policy), actor: actor ?? principal.name };
    return speculatePlans(app, input, signal);
  },
});
