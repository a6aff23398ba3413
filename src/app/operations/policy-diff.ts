/** Comparing two policies over all calls: what the second lets through, holds back or asks for differently. */
import * as z from "zod";
import { RULE_ACTIONS } from "../../model/policy/finding.ts";
import { operation } from "../door/operation.ts";
import { comparePolicies } from "./simulate/jobs.ts";
import { policyYaml } from "./simulate.ts";

const action = z.enum(RULE_ACTIONS);
const side = z.strictObject({
  decision: action,
  rules: z.array(z.string()),
  reasons: z.array(z.string()),
  approval: z.string().optional().meta({ description: "whose approval is asked for, where that differs" }),
});
const kind = z.strictObject({
  tools: z.array(z.string()),
  declared: z.int(),
  undeclared: z.string().optional(),
  from: action,
  to: action,
  example: z.looseObject({ tool: z.string() }),
  counted: z.array(z.string()).optional(),
  a: side,
  b: side,
  kinds: z.int(),
});

export const diffPolicy = operation({
  id: "diff_policy",
  summary: "Every class of call that a policy decides differently from another, each with an example",
  role: "operator",
  within_tenant: true,
  input: z.strictObject({ a: policyYaml.optional(), b: policyYaml }),
  output: z.strictObject({
    looser: z.array(kind),
    stricter: z.array(kind),
    other: z.array(kind),
    complete: z.boolean(),
    covered: z.strictObject({
      tools: z.int(),
      of: z.int(),
      kinds: z.int(),
      reasons: z.array(z.string()),
    }),
  }),
  errors: { too_many: "too many simulations are under way" },
  async run({ app, signal }, { a, b }) {
    return comparePolicies(
      app,
      a === undefined ? null : { text: a, file: "a" },
      { text: b, file: "b" },
      signal,
    );
  },
});
