/** Random policies and calls to hold the prover to: a seed makes the same ones again. */
import type { JsonValue } from "../../src/kernel/json/json.ts";
import type { PolicyCall } from "../../src/rules/policy/call.ts";
import { type CompiledPolicy, compilePolicy } from "../../src/rules/policy/compile.ts";
import { NO_CALL } from "../../src/rules/policy/prove/domain.ts";
import type { PolicyDoc } from "../../src/rules/policy/schema.ts";

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
export const VALUES: (JsonValue | undefined)[] = [
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
  {},
  { other: 1 },
  { x: null },
  [null],
  [{ x: 1 }],
  [["x"]],
  1.25,
  "ſ",
  "K",
];
export const AT = ["2026-06-15T12:00:00Z", "2026-06-15T20:00:00Z", "2026-06-20T12:00:00Z"].map((at) =>
  Date.parse(at),
);

const match = (r: Random, often = 1) => ({
  tool: r.maybe(0.6 * often, () => r.pick(["a.*", "a.x", "*b", "?", "{a.x,b}", "*"])),
  actor: r.maybe(0.3 * often, () => r.pick(["u", "u*", "?", "{u,v}"])),
  environment: r.maybe(0.3 * often, () => r.pick(["prod", "?*", "*", "d*"])),
  effect: r.maybe(0.2 * often, () => r.pick(["read", "ir*", "*e*"])),
  source: r.maybe(0.2 * often, () => r.pick(["s", "?", "*", "t"])),
});
const PATHS = [["$args.n"], ["$args.n.k"], ["$args.n.other"], ["$args.n[0]"], ["$args.m"]].map((paths) => [
  "$args.n",
  ...paths,
]);
export const condition = (r: Random, paths: readonly string[] = PATHS.flat()) => {
  const path = r.pick(paths);
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
    eq: () => r.pick([5, "a", null, true, ["a"], { k: 1 }, {}, []]),
    ne: () => r.pick([5, "ab", null, {}, [], "k"]),
    in: () => r.pick([[1, "a"], ["ab", "b"], [null], [{}, "", 0]]),
    not_in: () =>
      r.pick([
        ["a", "b"],
        [0, 1],
      ]),
    contains: () => r.pick(["a", 1, "b", null, {}, []]),
    not_contains: () => r.pick(["b", "ab"]),
    starts_with: () => r.pick(["a", "ab"]),
    matches: () => r.pick(["^a", "b$", "^[a-c]+$", "a.?b", "(?i)A", "(?i)^[ks]$", "^\\W"]),
    not_matches: () => r.pick(["^ab?$", "c"]),
    exists: () => undefined,
    absent: () => undefined,
  }[op]!();
  return { path, op, value };
};
export const many = <T>(r: Random, most: number, make: () => T): T[] =>
  Array.from({ length: Math.floor(r.next() * (most + 1)) }, make);

/** What a policy is about: the arguments of calls, the rest of them, or both. */
interface Theme {
  matching: number;
  conditions: number;
  paths: readonly string[];
}
const ANY: Theme = { matching: 1, conditions: 2, paths: PATHS.flat() };

/** Mostly one change at a time, because the prover compares each part separately. */
const themeOf = (r: Random): Theme =>
  r.pick([
    ANY,
    ...[1, 2, 3, 4].map(() => ({ matching: 0.2, conditions: 2, paths: r.pick(PATHS) })),
    ...[1, 2, 3].map(() => ({ matching: 1, conditions: 0.5, paths: ["$args.n"] })),
  ]);

type Doc = { version: 1 } & { [section in keyof typeof ENTRIES]?: { id: string }[] };

const ENTRIES = {
  rules: (r: Random, { matching, conditions, paths } = ANY) => ({
    id: "r",
    match: match(r, matching),
    when: many(r, conditions, () => condition(r, paths)),
    action: r.pick(["deny", "require_approval", "deny", "allow"]),
    approval: r.maybe(0.5, () => ({
      groups: r.pick([["A"], ["B"], ["A", "B"], []]),
      quorum: r.maybe(0.3, () => 2),
    })),
  }),
  windows: (r: Random, { matching } = ANY) => ({
    id: "w",
    match: match(r, matching),
    hours: "09:00-17:00",
    days: ["mon"],
    action: r.pick(["deny", "require_approval"]),
  }),
  budgets: (r: Random, { matching } = ANY) => ({
    id: "b",
    match: match(r, matching),
    path: "$args.n",
    max: 5,
    per: "run",
    window: "1h",
  }),
  limits: (r: Random, { matching } = ANY) => ({
    id: "l",
    match: match(r, matching),
    max: r.pick([0, 2]),
    per: "run",
    window: "1h",
  }),
};

/** Without the way through YAML and its checks, which takes longer than a proof. */
export function compiled(doc: object): CompiledPolicy {
  return compilePolicy(JSON.parse(JSON.stringify(doc)) as PolicyDoc);
}

export function policyOf(r: Random, claims: boolean): CompiledPolicy {
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

/** A policy of a few entries, and variants with a single entry changed, new or gone. */
export function family(r: Random, size: number): { policy: CompiledPolicy; others: CompiledPolicy[] } {
  // Mostly rules: what counts is tried at several levels, and takes ten times as long.
  const theme = themeOf(r);
  const section = r.next() < 0.92 ? "rules" : r.pick(["windows", "budgets", "limits"] as const);
  const rules = [ENTRIES.rules(r, theme), ...many(r, 2, () => ENTRIES.rules(r, theme))];
  const doc: Doc = { version: 1, rules: rules.map((rule, i) => ({ ...rule, id: `r${i}` })) };
  doc[section] ??= [ENTRIES[section](r, theme)];
  const [first, ...rest] = doc[section]!;
  const others = Array.from({ length: size }, () => {
    const next = { ...ENTRIES[section](r, theme), id: first!.id };
    const other = r.pick([[next, ...rest], [next, ...rest], rest, [...doc[section]!, { ...next, id: "n" }]]);
    return compiled({ ...doc, [section]: other });
  });
  return { policy: compiled(doc), others };
}

/** A value that a policy does not name, near one that it might. */
function anyValue(r: Random, depth = 0): JsonValue | undefined {
  const text = () =>
    many(r, 4, () => r.pick(["a", "b", "c", "A", "B", "k", "5", " ", "\n", "é", "😀"])).join("");
  return r.pick<() => JsonValue | undefined>([
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
    ...NO_CALL,
    tool: r.maybe(0.5, () => r.pick(TOOLS)) ?? `${text("ab.x")}b`,
    actor: r.maybe(0.5, () => r.pick(ACTORS)) ?? `u${text("uvw")}`,
    environment: r.maybe(0.5, () => r.pick(ENVIRONMENTS)) ?? `d${text("dev")}`,
    args: args as JsonValue,
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
  const args: { [name: string]: JsonValue } = {};
  if (n !== undefined) args["n"] = n;
  const m = r.pick(VALUES);
  if (m !== undefined) args["m"] = m;
  const labels = { effect: r.pick(EFFECTS), source: r.pick(LABELS) };
  return { call: { ...NO_CALL, tool, actor, environment, args, ...labels }, at_ms: r.pick(AT) };
}
