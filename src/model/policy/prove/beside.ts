/**
 * What two policies decide differently beside the arguments of a call: by what was proven, counted or opened before it.
 * No class of calls shows that, so a comparison that finds it says that it is not complete.
 */
import { canonical } from "../../../kernel/canonical.ts";
import type { Json } from "../../../kernel/json.ts";
import type { PolicyDoc } from "../schema.ts";
import { settingsOf } from "./entries.ts";

export function differencesBeside(a: PolicyDoc, b: PolicyDoc): string[] {
  return [
    ...undoOf(a, b),
    ...openRequestsOf(a, b),
    ...countsOf("limits", a, b),
    ...countsOf("budgets", a, b),
    ...countsOf("flows", a, b),
  ];
}

function undoOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ undo }) => canonical((undo ?? {}) as Json));
  if (was !== is) return ["undo differs: what it restricts depends on when each undo was last proven"];
  return a.undo?.unproven !== "require_approval" || settingsOf(a) === settingsOf(b)
    ? []
    : ["undo.unproven asks for approval, and what it asks for depends on settings that differ"];
}

function openRequestsOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ approvals }) => approvals?.max_open_per_run);
  return was === is
    ? []
    : ["approvals.max_open_per_run differs: what it restricts depends on the requests that are open"];
}

/** A counter goes by the id of its entry: under another one it begins anew. */
function countsOf(section: "limits" | "budgets" | "flows", a: PolicyDoc, b: PolicyDoc): string[] {
  const [before, after] = [a, b].map((doc) => ((doc[section] ?? []) as readonly Counting[]).map(counterOf));
  const isIn = (list: readonly Counter[] | undefined, { id, counts }: Counter) =>
    list!.some((other) => other.id === id && other.counts === counts);
  const fresh = new Set(after!.filter((one) => !isIn(before, one)).map(({ counts }) => counts));
  return before!
    .filter((one) => !isIn(after, one) && fresh.has(one.counts))
    .map(({ id }) => `${section}: ${id} has another id, under which its count begins anew`);
}

interface Counting {
  id: string;
  match?: unknown;
  after?: unknown;
  per?: string;
  path?: string;
}

interface Counter {
  id: string;
  /** What it counts, in one text. */
  counts: string;
}

function counterOf({ id, match, after, per, path }: Counting): Counter {
  return { id, counts: canonical({ match, after, per, path } as unknown as Json) };
}
