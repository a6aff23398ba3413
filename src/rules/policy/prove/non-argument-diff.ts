/**
 * Differences between two policies that depend on more than a call's arguments: on drill results, counters or open
 * requests. No class of calls shows them, so the comparison reports that it is incomplete.
 */

import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { asJson } from "../../../kernel/json/json.ts";
import { MAX_FOLLOWED_VALUES } from "../compile.ts";
import type { PolicyDoc } from "../schema.ts";
import { settingsOf } from "./entries.ts";

export function nonArgumentDifferences(a: PolicyDoc, b: PolicyDoc): string[] {
  return [
    ...undoOf(a, b),
    ...openRequestsOf(a, b),
    ...sandboxedOf(a, b),
    ...countsOf("limits", a, b),
    ...countsOf("budgets", a, b),
    ...countsOf("flows", a, b),
    ...followedOf(a, b),
  ];
}

function undoOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ undo }) => toCanonicalJson((undo ?? {}) as JsonValue));
  if (was !== is) return ["undo differs: its effect depends on the last drill of each undo"];
  return a.undo?.unproven !== "require_approval" || settingsOf(a) === settingsOf(b)
    ? []
    : ["undo.unproven requires approval, and its terms depend on settings that differ"];
}

function sandboxedOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const lifted = ({ rules = [] }: PolicyDoc) =>
    toCanonicalJson(rules.filter(({ sandboxed }) => sandboxed !== undefined) as JsonValue);
  return lifted(a) === lifted(b)
    ? []
    : ["rules with sandboxed differ: their effect depends on whether svc run confines the call"];
}

function openRequestsOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ approvals }) => approvals?.max_open_per_run);
  return was === is
    ? []
    : ["approvals.max_open_per_run differs: its effect depends on the number of open requests"];
}

function followedOf(a: PolicyDoc, b: PolicyDoc): string[] {
  const [was, is] = [a, b].map(({ carries }) => carries?.max ?? MAX_FOLLOWED_VALUES);
  return was === is
    ? []
    : ["carries.max differs: its effect depends on the number of values that a run has read"];
}

/** Reports entries with a new id. Counters belong to an id, so the count starts at zero. */
function countsOf(section: "limits" | "budgets" | "flows", a: PolicyDoc, b: PolicyDoc): string[] {
  const [before, after] = [a, b].map((doc) =>
    ((doc[section] ?? []) as readonly Counting[]).filter(hasCounter).map(counterOf),
  );
  const isIn = (list: readonly Counter[] | undefined, { id, counts }: Counter) =>
    list!.some((other) => other.id === id && other.counts === counts);
  const fresh = new Set(after!.filter((one) => !isIn(before, one)).map(({ counts }) => counts));
  return before!
    .filter((one) => !isIn(after, one) && fresh.has(one.counts))
    .map(({ id }) => `${section}: ${id} has a new id, so its count starts at zero`);
}

interface Counting {
  id: string;
  match?: unknown;
  after?: unknown;
  per?: string;
  path?: string;
  carries?: boolean;
  when?: readonly unknown[];
}

/** A flow that only follows values counts nothing under its id. */
const hasCounter = ({ carries, when = [] }: Counting): boolean => carries !== true || when.length > 0;

interface Counter {
  id: string;
  /** Canonical text of everything that defines the count. */
  counts: string;
}

function counterOf({ id, match, after, per, path }: Counting): Counter {
  return { id, counts: toCanonicalJson(asJson({ match, after, per, path })) };
}
