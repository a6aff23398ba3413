/** The quotas of callers: what one is, and what is wrong with it. */
import * as z from "zod";
import { glob } from "../../model/policy/fields.ts";
import { row } from "../row.ts";

const LIMITED = ["requests_per_second", "open_approvals", "waiting", "sessions"] as const;
const count = z.int().min(0).max(1_000_000).optional();

const quota = z
  .strictObject({
    match: z.strictObject({ tenant: glob.optional(), actor: glob.optional() }).default({}),
    requests_per_second: z.number().min(0.001).max(1_000_000).optional(),
    burst: z.int().min(1).max(1_000_000).optional(),
    open_approvals: count,
    waiting: count,
    sessions: count,
  })
  .superRefine((value, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if (LIMITED.every((name) => value[name] === undefined))
      refuse(`limits nothing; write at least one of ${LIMITED.join(", ")}`);
    if (value.burst !== undefined && value.requests_per_second === undefined)
      refuse("burst needs requests_per_second");
  });

export type Quota = z.output<typeof quota>;

export const QUOTA_ROWS = {
  quotas: row<Quota[]>({
    type: "list of quotas",
    schema: z.array(quota).max(1_000) as unknown as z.ZodType<Quota[]>,
    default: [],
    about:
      "`{match: {tenant, actor}, requests_per_second, burst, open_approvals, waiting, sessions}`: what callers may take; past it 429.",
  }),
} as const;
