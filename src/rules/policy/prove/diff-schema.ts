/** Schema of the comparison of two policies. */
import * as z from "zod";
import { RULE_ACTIONS } from "../finding.ts";

const action = z.enum(RULE_ACTIONS);
const side = z.strictObject({
  decision: action,
  rules: z.array(z.string()),
  reasons: z.array(z.string()),
  approval: z.string().exactOptional().meta({ description: "the required approvers, if they differ" }),
});
const diffClass = z.strictObject({
  /** First declared tools of the class, by name. */
  tools: z.array(z.string()),
  /** Number of declared tools in the class. */
  declared: z.int(),
  /** Example name of a tool without a manifest, if the class includes such tools. */
  undeclared: z.string().exactOptional(),
  from: action,
  to: action,
  example: z.looseObject({ tool: z.string() }),
  /** Counts before the call, if the decision depends on them. */
  counted: z.array(z.string()).exactOptional(),
  a: side,
  b: side,
  /** Number of kinds of calls in the class. */
  kinds: z.int(),
});

export const policyDiffSchema = z.strictObject({
  looser: z.array(diffClass),
  stricter: z.array(diffClass),
  other: z.array(diffClass),
  complete: z.boolean(),
  covered: z.strictObject({
    tools: z.int(),
    of: z.int(),
    kinds: z.int(),
    reasons: z.array(z.string()),
  }),
});
