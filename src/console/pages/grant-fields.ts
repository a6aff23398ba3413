/** The fields that both forms for a grant have. A limit that cannot be read is an error, and never no limit. */
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Ctx, Form } from "../ctx.ts";

export const MOST_HOURS = LIMITS.grant_days * 24;

/** Not a number where the field is empty: left out, the operation would take the most that there is. */
export const readUses = (form: Form): number => Number(form.text("max_uses") || Number.NaN);

export function readBudget(form: Form): { path: string; max: number } | undefined {
  const path = form.optional("budget_path");
  const max = form.optional("budget_max");
  if (path === undefined && max === undefined) return undefined;
  if (path === undefined)
    throw invalid(
      "budget: say which argument adds up to it, such as $args.amount, or leave both fields empty",
    );
  if (max === undefined)
    throw invalid("budget: say how much the argument may add up to, or leave both fields empty");
  return { path, max: Number(max) };
}

export function readExpiry({ form, app }: Ctx): string {
  const hours = Number(form.text("hours"));
  if (!(hours > 0 && hours <= MOST_HOURS))
    throw invalid(`hours: for how long? Write a number above 0 and at most ${MOST_HOURS}`);
  return new Date(app.core.env.now() + hours * 3_600_000).toISOString();
}
