/**
 * What two policies decide differently beside the arguments of a call: by what was proven, counted or opened before it.
 * No class of calls shows that, so a comparison that finds it says that it is not complete.
 */
import { canonical } from "../../../kernel/canonical.ts";
import type { Json } from "../../../kernel/json.ts";
import type { PolicyDoc } from "../schema.ts";

export function differencesBeside(a: PolicyDoc, b: PolicyDoc): string[] {
  return [
    ...undoOf(a, b),
    ...openRequestsOf(a, b),
    ...countsOf("limits", a, b),
    ...countsOf("budgets", a, b),
  ];
}

function undoOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ undo }) => canonical((undo ?? {}) as Json));
  return was === is ? [] : ["undo differs: what it restricts depends on when each undo was last proven"];
}

function openRequestsOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ approvals }) => approvals?.max_open_per_run);
  return was === is
    ? []
    : ["approvals.max_open_per_run differs: what it restricts depends on the requests that are open"];
}

/** A counter goes by the id of its entry: under another one it begins anew. */
function countsOf(section: "limits" | "budgets", a: PolicyDoc, b: PolicyDoc): string[] {
  const kept = new Set((b[section] ?? []).map(({ id }) => id));
  const renamed = new Set((b[section] ?? []).map(withoutId));
  return (a[section] ?? [])
    .filter((one) => !kept.has(one.id) && renamed.has(withoutId(one)))
    .map(({ id }) => `${section}: ${id} has another id, under which its count begins anew`);
}

function withoutId(entry: { id: string }): string {
  const { id: _, ...rest } = entry;
  return canonical(rest as unknown as Json);
}
