/** A grant as people ask for it: the same fields to give one and to see what it would have covered. */
import * as z from "zod";
import type { GiveInput } from "../../../engine/grants/give.ts";
import { tryTimestamp } from "../../../kernel/duration.ts";
import { compileGlob } from "../../../kernel/glob.ts";
import type { Json } from "../../../kernel/json.ts";
import { LIMITS } from "../../../kernel/limits.ts";
import type { GrantCondition, GrantTerms } from "../../../model/grant.ts";
import { argsPath, glob, id } from "../../../model/policy/fields.ts";
import { OP_NAMES, OPS } from "../../../model/policy/ops/table.ts";
import { nullable, personsReason } from "../schemas.ts";

/** Names that no tool and no actor has: a glob that takes them all takes everything. */
const UNLIKELY = ["q", "zq.7-x_w", "\u{10FFFD} 0/z", "#".repeat(40)];

function namesSome(source: string): boolean {
  try {
    const { test } = compileGlob(source);
    return !UNLIKELY.every((name) => test(name));
  } catch {
    // What is wrong with it was said already.
    return true;
  }
}

const narrow = (what: string) =>
  glob.refine(namesSome, `must say which ${what}: a pattern such as * would cover all of them`);
/** An empty name is that of the runs which have none. */
const anywhere = nullable(z.union([z.literal(""), glob])).optional();

const condition = z
  .strictObject({ path: argsPath, op: z.enum(OP_NAMES), value: z.unknown().optional() })
  .superRefine(({ op, value }, context) => {
    const problem = OPS[op].operandProblem(value as Json | undefined);
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
    .array(id)
    .min(1, "name at least one rule of the policy whose need for approval it lifts")
    .max(LIMITS.page_max),
  when: z
    .array(condition)
    .max(LIMITS.grant_conditions, `at most ${LIMITS.grant_conditions} conditions`)
    .optional(),
  args_only: nullable(
    z
      .array(z.string().min(1).max(LIMITS.grant_arg_chars))
      .max(LIMITS.grant_args, `at most ${LIMITS.grant_args} arguments`),
  )
    .optional()
    .meta({
      description: "the arguments that a covered call may have; a call with any other is not covered",
    }),
  max_uses: z.int().min(1).max(LIMITS.grant_uses, `at most ${LIMITS.grant_uses} uses`).optional(),
  budget: nullable(budget).optional(),
  irreversible: z.boolean().optional(),
};

const expires_at = z
  .string()
  .refine((value) => tryTimestamp(value) !== undefined, "must be an ISO 8601 timestamp");

export const grantInput = z.strictObject({ ...terms, expires_at, reason: personsReason });
/** Looking ahead needs neither a duration nor a reason. */
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
    max_uses: max_uses ?? LIMITS.grant_uses,
    budget: budget ?? null,
    irreversible: irreversible ?? false,
  };
}

export function giveInputOf(input: z.output<typeof grantInput>): GiveInput {
  return { ...termsOf(input), reason: input.reason, expires_ms: tryTimestamp(input.expires_at)! };
}
