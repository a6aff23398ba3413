/** Compares the diff of two policies with brute force: it must report every difference that calls show. */
import type { PolicyCall } from "../../src/rules/policy/call.ts";
import { needsMet } from "../../src/rules/policy/checks/approvals.ts";
import type { CounterDoc } from "../../src/rules/policy/checks/counters.ts";
import type { CompiledPolicy } from "../../src/rules/policy/compile.ts";
import { evaluatePolicy, type PolicyEvaluation } from "../../src/rules/policy/evaluate.ts";
import { diffPolicies } from "../../src/rules/policy/prove/diff.ts";
import { AT, anyCall, family, random, smallCall } from "./random-policies.ts";

const RANK = { allow: 0, require_approval: 1, deny: 2 };
const A_FAMILY = 10;
const CALLS = 24;

/** Families of policies from a seed on, each of a policy and ten variants of it, with the calls to compare. */
export function heldToPairs(seed: number, families: number) {
  const seen = { pairs: 0, complete: 0, calls: 0, decided_differently: 0 };
  let disagreement: object | null = null;
  for (let i = 0; i < families; i++) {
    const r = random(seed + i);
    const { policy, others } = family(r, A_FAMILY);
    const tried = Array.from({ length: CALLS }, (_, j) => (j % 2 === 0 ? smallCall(r) : anyCall(r)));
    for (const other of others) {
      const [a, b] = r.next() < 0.5 ? [policy, other] : [other, policy];
      const { complete, calls, differing, untold } = heldTo(a, b, tried, 600);
      seen.pairs++;
      if (complete) seen.complete++;
      seen.calls += calls;
      seen.decided_differently += differing;
      if (untold !== null) disagreement ??= { seed: seed + i, ...untold };
    }
  }
  return { ...seen, disagreement };
}

type Tried = { call: PolicyCall; at_ms: number };

interface Held {
  complete: boolean;
  calls: number;
  differing: number;
  /** The first difference that the comparison does not tell, or tells wrongly. */
  untold: object | null;
}

/** Whether a comparison that says it is complete tells every difference that the calls show. */
export function heldTo(a: CompiledPolicy, b: CompiledPolicy, tried: Iterable<Tried>, cells: number): Held {
  const late = performance.now() + 2_000;
  const diff = diffPolicies(a, b, {
    labels: new Map(),
    now_ms: AT[0]!,
    share: cells / 2,
    budget: { cells, late: () => performance.now() > late },
  });
  const held: Held = { complete: diff.complete, calls: 0, differing: 0, untold: null };
  const known = new Set<string>();
  for (const direction of ["looser", "stricter", "other"] as const)
    for (const one of diff[direction]) {
      known.add(JSON.stringify([direction, one.from, one.to, one.a.rules, one.b.rules]));
      if (one.from !== one.to && (RANK[one.to] < RANK[one.from] ? "looser" : "stricter") !== direction)
        held.untold ??= { direction, one, a: a.doc, b: b.doc };
    }
  if (!diff.complete) return held;
  for (const { call, at_ms } of tried) {
    held.calls++;
    const counted = countersFor(a, b, call, at_ms, held.calls);
    const was = evaluatePolicy(a, call, at_ms, counted.a);
    const is = evaluatePolicy(b, call, at_ms, counted.b);
    const direction = directionOf(was, is);
    if (direction === null) continue;
    held.differing++;
    const key = JSON.stringify([direction, was.action, is.action, was.rules, is.rules]);
    if (!known.has(key)) held.untold ??= { call, at_ms, key, a: a.doc, b: b.doc };
  }
  return held;
}

/** By decision, and where both require approval by the groups of approvers that suffice for one and not for the other. */
function directionOf(was: PolicyEvaluation, is: PolicyEvaluation): "looser" | "stricter" | null {
  if (was.action !== is.action) return RANK[is.action] < RANK[was.action] ? "looser" : "stricter";
  if (was.approval === null || is.approval === null) return null;
  if (JSON.stringify(was.approval.needs) === JSON.stringify(is.approval.needs)) return null;
  const [before, after] = [was, is].map(({ approval }) =>
    TEAMS.map((team) => needsMet(approval!.needs, team)),
  );
  if (after!.some((does, i) => does && !before![i])) return "looser";
  return before!.some((does, i) => does && !after![i]) ? "stricter" : null;
}

/** Up to two people of each kind. */
const TEAMS = [[], ["A"], ["B"], ["A", "B"]].reduce<{ groups: string[] }[][]>(
  (teams, groups) =>
    teams.flatMap((team) => [team, [...team, { groups }], [...team, { groups }, { groups }]]),
  [[]],
);

const COUNTS = [0, 1, 2, 4, 5, 6];
const AGES = [0, 1_800_000, 7_200_000];

/** What the entry that was changed has counted: the same in both policies where it counts the same calls. */
function countersFor(a: CompiledPolicy, b: CompiledPolicy, call: PolicyCall, at_ms: number, turn: number) {
  const one = (policy: CompiledPolicy, other: CompiledPolicy, shift: number) => {
    const counters = new Map<string, CounterDoc>();
    for (const section of ["limits", "budgets"] as const) {
      const changed = policy.doc[section]?.[0];
      if (changed === undefined || policy.doc[section] === other.doc[section]) continue;
      const alike = sees(changed) === sees(other.doc[section]?.[0]);
      const place = turn + (alike ? 0 : shift);
      const bucket = [at_ms - AGES[place % AGES.length]!, COUNTS[place % COUNTS.length]!] as const;
      counters.set(`${section.slice(0, -1)}:${changed.id}:run:${call.run_id}`, { buckets: [[...bucket]] });
    }
    return counters;
  };
  return { a: one(a, b, 1), b: one(b, a, 2) };
}

const sees = (entry: { match?: unknown } | undefined) => JSON.stringify(entry?.match);
