/** Compares two policies over all calls: which calls the second one allows, blocks or sends to approval differently. */
import * as z from "zod";
import { policyDiffSchema } from "../../rules/policy/prove/diff-schema.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { comparePolicies } from "./jobs.ts";
import { policyYaml } from "./simulate.ts";

export const diffPolicy = defineOperation({
  id: "diff_policy",
  summary: "List every class of calls that two policies decide differently, each with an example",
  role: "operator",
  within_tenant: true,
  input: z.strictObject({ a: policyYaml.optional(), b: policyYaml }),
  output: policyDiffSchema,
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
