/** Fields that both grant forms share. An unreadable limit is an error and never means "unlimited". */
import { invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import type { PageContext, SubmittedForm } from "../../page-context.ts";

export const MAX_GRANT_HOURS = SERVICE_LIMITS.grant_days * 24;

/** Returns NaN for an empty field, which is rejected. Without a value the operation would use the maximum. */
export const readUses = (form: SubmittedForm): number => Number(form.text("max_uses") || Number.NaN);

export function readBudget(form: SubmittedForm): { path: string; max: number } | undefined {
  const path = form.optional("budget_path");
  const max = form.optional("budget_max");
  if (path === undefined && max === undefined) return undefined;
  if (path === undefined)
    throw invalidError(
      "budget: name the argument to add up, such as $args.amount, or leave both fields empty",
    );
  if (max === undefined) throw invalidError("budget: set the maximum total, or leave both fields empty");
  return { path, max: Number(max) };
}

export function readExpiry({ form, app }: PageContext): string {
  const hours = Number(form.text("hours"));
  if (!(hours > 0 && hours <= MAX_GRANT_HOURS))
    throw invalidError(`hours: must be a number above 0 and at most ${MAX_GRANT_HOURS}`);
  return new Date(app.core.env.now() + hours * 3_600_000).toISOString();
}
