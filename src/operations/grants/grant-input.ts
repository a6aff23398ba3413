/** Input fields of a grant, shared by creation and preview. */
import * as z from "zod";
import type { GrantInput } from "../../govern/grants/give.ts";
import type { GrantCondition, GrantTerms } from "../../govern/grants/grant.ts";
import { tryTimestamp } from "../../kernel/duration.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { compileGlob } from "../../kernel/text/glob.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { argsPath, globSchema, idSchema } from "../../rules/policy/fields.ts";
import { COMPARISON_OPS, OP_NAMES } from "../../rules/policy/ops/table.ts";
import { personsReason } from "../schemas.ts";

/** Names that no real tool or actor has. A glob that matches all of them matches everything. */
const UNLIKELY = ["q", "zq.7-x_w", "\u{10FFFD} 0/z", "#".repeat(40)];

function namesSome(source: string): boolean {
  try {
    const { test } = compileGlob(source);
    return !UNLIKELY.every((name) => test(name));
  } catch {
    // An invalid glob has been reported already.
    return true;
  }
}

const narrow = (what: string) =>
  globSchema.refine(namesSome, `must say which ${what}: a pattern such as * would cover all of them`);
/** The empty name matches runs without one. */
const anywhere = nullableSchema(z.union([z.literal(""), globSchema])).optional();

const condition = z
  .strictObject({ path: argsPath, op: z.enum(OP_NAMES), value: z.unknown().optional() })
  .superRefine(({ op, value }, context) => {
    const problem = COMPARISON_OPS[op].operandProblem(value as JsonValue | undefined);
    if (problem !== null) context.addIssue({ code: "custom", path: ["value"], message: problem });
  });

const budget = z.strictObject({ path: argsPath, max: z.number().min(0) });

const terms = {
  match: z.strictObject({
    tool: narrow("tools"),
    actor: narrow("actors"),
    tenant: anywhere,
    environment: anywhere,
  }),
  rules: z
    .array(idSchema)
    .min(1, "name at least one policy rule whose approval requirement the grant satisfies")
    .max(SERVICE_LIMITS.page_max),
  when: z
    .array(condition)
    .max(SERVICE_LIMITS.grant_conditions, `at most ${SERVICE_LIMITS.grant_conditions} conditions`)
    .optional(),
  args_only: nullableSchema(
    z
      .array(z.string().min(1).max(SERVICE_LIMITS.grant_arg_chars))
      .max(SERVICE_LIMITS.grant_args, `at most ${SERVICE_LIMITS.grant_args} arguments`),
  )
    .optional()
    .meta({
      description: "allowed argument names; a call with any other argument is not covered",
    }),
  max_uses: z
    .int()
    .min(1)
    .max(SERVICE_LIMITS.grant_uses, `at most ${SERVICE_LIMITS.grant_uses} uses`)
    .optional(),
  budget: nullableSchema(budget).optional(),
  irreversible: z.boolean().optional(),
};

const expires_at = z
  .string()
  .refine((value) => tryTimestamp(value) !== undefined, "must be an ISO 8601 timestamp");

export const grantInput = z.strictObject({ ...terms, expires_at, reason: personsReason });
/** A preview needs neither a duration nor a reason. */
export const previewInput = z.strictObject({
  ...terms,
  expires_at: expires_at.optional(),
  reason: personsReason.optional(),
});

export function termsOf(input: z.output<typeof previewInput>): GrantTerms {
  const { match, rules, when, args_only, max_uses, budget, irreversible } = input;
  return {
    match: {
      tool: match.tool,
      actor: match.actor,
      tenant: match.tenant ?? null,
      environment: match.environment ?? null,
    },
    rules: [...new Set(rules)],
    when: (when ?? []) as GrantCondition[],
    ...(args_only && { args_only }),
    max_uses: max_uses ?? SERVICE_LIMITS.grant_uses,
    budget: budget ?? null,
    irreversible: irreversible ?? false,
  };
}

export function giveInputOf(input: z.output<typeof grantInput>): GrantInput {
  return { ...termsOf(input), reason: input.reason, expires_ms: tryTimestamp(input.expires_at)! };
}
