/** Quotas of API callers and their validation. */
import * as z from "zod";
import { globSchema } from "../../rules/policy/fields.ts";
import { settingRow } from "../setting-row.ts";

const LIMITED = ["requests_per_second", "open_approvals", "waiting", "sessions"] as const;
const count = z.int().min(0).max(1_000_000).optional();

const quota = z
  .strictObject({
    match: z.strictObject({ tenant: globSchema.optional(), actor: globSchema.optional() }).default({}),
    requests_per_second: z.number().min(0.001).max(1_000_000).optional(),
    burst: z.int().min(1).max(1_000_000).optional(),
    open_approvals: count,
    waiting: count,
    sessions: count,
  })
  .superRefine((value, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if (LIMITED.every((name) => value[name] === undefined))
      refuse(`limits nothing; set at least one of ${LIMITED.join(", ")}`);
    if (value.burst !== undefined && value.requests_per_second === undefined)
      refuse("burst needs requests_per_second");
  });

export type CallerQuota = z.output<typeof quota>;

export const QUOTA_ROWS = {
  quotas: settingRow<CallerQuota[]>({
    type: "list of quotas",
    schema: z.array(quota).max(1_000) as z.ZodType<CallerQuota[]>,
    default: [],
    about:
      "`{match: {tenant, actor}, requests_per_second, burst, open_approvals, waiting, sessions}`: limits per caller. Requests over a limit get a 429.",
  }),
} as const;
