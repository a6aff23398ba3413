/** Random policies and calls to hold the prover to: a seed makes the same ones again. */
import type { Json } from "../../src/kernel/json.ts";
import type { PolicyCall } from "../../src/model/policy/call.ts";
import { compilePolicy, type Policy } from "../../src/model/policy/compile.ts";
import { NOBODY } from "../../src/model/policy/prove/domain.ts";
import type { PolicyDoc } from "../../src/model/policy/schema.ts";

/** A small generator: the same seed makes the same policies. */
export function random(seed: number) {
  let state = Math.imul(seed, 2654435761) + 1;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const maybe = <T>(share: number, make: () => T): T | undefined => (next() < share ? make() : undefined);
  return { next, pick, maybe };
}
export type Random = ReturnType<typeof random>;

const TOOLS = ["a.x", "a.y", "b", "ab"];
const ACTORS = ["u", "v", "uu"];
const ENVIRONMENTS = [null, "prod", "dev"];
const EFFECTS = [null, "read", "irreversible"];
const LABELS: string[][] = [[], ["s"], ["t"], ["s", "t"]];
export const VALUES: (Json | undefined)[] = [
  undefined,
  null,
  true,
  -1,
  0,
  1,
  5,
  6,
  "",
  "a",
  "ab",
  "b",
  "abc",
  "5",
  ["a"],
  [1],
  ["a", "b"],
  [],
  { k: 1 },
  { k: "a" },
];
export const AT = ["2026-06-15T12:00:00Z", "2026-06-15T20:00:00Z", "2026-06-20T12:00:00Z"].map((at) =>
  Date.parse(at),
);

const match = (r: Random) => ({
  tool: r.maybe(0.6, () => r.pick(["a.*", "a.x", "*b", "?", "{a.x,b}", "*"])),
  actor: r.maybe(0.3, () => r.pick(["u", "u*", "?", "{u,v}"])),
  environment: r.maybe(0.3, () => r.pick(["prod", "?*", "*", "d*"])),
  effect: r.maybe(0.2, () => r.pick(["read", "ir*", "*e*"])),
  source: r.maybe(0.2, () => r.pick(["s", "?", "*", "t"])),
});
export const condition = (r: Random) => {
  const path = r.pick(["$args.n", "$args.n", "$args.m", "$args.n.k"]);
  const op = r.pick([
    "gt",
    "lte",
    "eq",
    "ne",
    "in",
    "not_in",
    "contains",
    "not_contains",
    "starts_with",
    "matches",
    "not_matches",
    "exists",
    "absent",
  ]);
  const value = {
    gt: () => r.pick([0, 1, 5]),
    lte: () => r.pick([0, 5]),
    eq: () => r.pick([5, "a", null, true, ["a"], { k: 1 }]),
    ne: () => r.pick([5, "ab"]),
    in: () => r.pick([[1, "a"], ["ab", "b"], [null]]),
    not_in: () =>
      r.pick([
        ["a", "b"],
        [0, 1],
      ]),
    contains: () => r.pick(["a", 1, "b"]),
    not_contains: () => r.pick(["b", "ab"]),
    starts_with: () => r.pick(["a", "ab"]),
    matches: () => r.pick(["^a", "b$", "^[a-c]+$", "a.?b", "(?i)A"]),
    not_matches: () => r.pick(["^ab?$", "c"]),
    exists: () => undefined,
    absent: () => undefined,
  }[op]!();
  return { path, op, value };
};
export const many = <T>(r: Random, most: number, make: () => T): T[] =>
  Array.from({ length: Math.floor(r.next() * (most + 1)) }, make);

type Doc = { version: 1 } & { [section in keyof typeof ENTRIES]?: { id: string }[] };

const ENTRIES = {
  rules: (r: Random) => ({
    id: "r",
    match: match(r),
    when: many(r, 2, () => condition(r)),
    action: r.pick(["deny", "require_approval", "deny", "allow"]),
  }),
  windows: (r: Random) => ({
    id: "w",
    match: match(r),
    hours: "09:00-17:00",
    days: ["mon"],
    action: r.pick(["deny", "require_approval"]),
  }),
  budgets: (r: Random) => ({ id: "b", match: match(r), path: "$args.n", max: 5, per: "run", window: "1h" }),
  limits: (r: Random) => ({ id: "l", match: match(r), max: r.pick([0, 2]), per: "run", window: "1h" }),
};

/** Without the way through YAML and its checks, which takes longer than a proof. */
export function compiled(doc: object): Policy {
  return compilePolicy(JSON.parse(JSON.stringify(doc)) as PolicyDoc);
}

export function policyOf(r: Random, claims: boolean): Policy {
  const doc = {
    version: 1,
    rules: many(r, 4, () => ENTRIES.rules(r)).map((rule, i) => ({ ...rule, id: `r${i}` })),
    windows: many(r, 1, () => ENTRIES.windows(r)),
    budgets: many(r, 1, () => ENTRIES.budgets(r)),
    limits: many(r, 1, () => ENTRIES.limits(r)),
    risk: r.maybe(0.2, () => ({ require_approval_at: r.pick([50, 60]), deny_at: r.maybe(0.5, () => 75) })),
    claims: claims
      ? [
          {
            name: "c",
            match: match(r),
            when: many(r, 1, () => condition(r)),
            at_least: r.pick(["deny", "require_approval"]),
            unless: r.maybe(0.3, () => ({ actor: "u" })),
          },
        ]
      : [],
  };
  return compiled(doc);
}

/** A policy of a few entries, and one in which a single entry is another, is new, or is gone. */
export function relatedPair(r: Random): [Policy, Policy] {
  // Mostly rules: what counts is tried at several levels, and takes ten times as long.
  const section = r.next() < 0.85 ? "rules" : r.pick(["windows", "budgets", "limits"] as const);
  const rules = [ENTRIES.rules(r), ...many(r, 2, () => ENTRIES.rules(r))];
  const doc: Doc = { version: 1, rules: rules.map((rule, i) => ({ ...rule, id: `r${i}` })) };
  doc[section] ??= [ENTRIES[section](r)];
  const [first, ...rest] = doc[section]!;
  const next = { ...ENTRIES[section](r), id: first!.id };
  const other = r.pick([[next, ...rest], [next, ...rest], rest, [...doc[section]!, { ...next, id: "n" }]]);
  const pair = [doc, { ...doc, [section]: other }];
  return (r.next() < 0.5 ? pair : pair.reverse()).map(compiled) as [Policy, Policy];
}

/** A value that a policy does not name, near one that it might. */
function anyValue(r: Random, depth = 0): Json | undefined {
  const text = () =>
    many(r, 4, () => r.pick(["a", "b", "c", "A", "B", "k", "5", " ", "\n", "é", "😀"])).join("");
  return r.pick<() => Json | undefined>([
    () => r.pick(VALUES),
    text,
    text,
    () => Math.floor(r.next() * 14) - 4,
    () => r.next() * 12 - 3,
    () => (depth > 1 ? null : many(r, 3, () => anyValue(r, depth + 1) ?? null)),
    () => (depth > 1 ? null : { [r.pick(["k", "other"])]: anyValue(r, depth + 1) ?? null }),
  ])();
}

/** Any call at all: names, values and times are made, not taken from a list. */
export function anyCall(r: Random): { call: PolicyCall; at_ms: number } {
  const text = (of: string) => many(r, 3, () => r.pick(of.split(""))).join("");
  const made = { n: anyValue(r), m: anyValue(r) };
  const args = Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined));
  const call: PolicyCall = {
    ...NOBODY,
    tool: r.maybe(0.5, () => r.pick(TOOLS)) ?? `${text("ab.x")}b`,
    actor: r.maybe(0.5, () => r.pick(ACTORS)) ?? `u${text("uvw")}`,
    environment: r.maybe(0.5, () => r.pick(ENVIRONMENTS)) ?? `d${text("dev")}`,
    args: args as Json,
    effect: r.pick(EFFECTS),
    source: r.pick(LABELS),
  };
  return { call, at_ms: AT[0]! + Math.floor(r.next() * 14 * 86_400_000) };
}

/** Every call of a small world. */
export function* calls(r: Random): Generator<{ call: PolicyCall; at_ms: number }> {
  for (const tool of TOOLS)
    for (const n of VALUES)
      for (const actor of ACTORS)
        for (const environment of ENVIRONMENTS) yield smallCall(r, { tool, n, actor, environment });
}

/** One call of it. */
export function smallCall(
  r: Random,
  { tool, n, actor, environment } = {
    tool: r.pick(TOOLS),
    n: r.pick(VALUES),
    actor: r.pick(ACTORS),
    environment: r.pick(ENVIRONMENTS),
  },
): { call: PolicyCall; at_ms: number } {
  const args: { [name: string]: Json } = {};
  if (n !== undefined) args["n"] = n;
  const m = r.pick(VALUES);
  if (m !== undefined) args["m"] = m;
  const labels = { effect: r.pick(EFFECTS), source: r.pick(LABELS) };
  return { call: { ...NOBODY, tool, actor, environment, args, ...labels }, at_ms: r.pick(AT) };
}
