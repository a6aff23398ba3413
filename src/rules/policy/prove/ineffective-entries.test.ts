/** Warnings of entries without effect: found where they are meant, and never wrong. */
import { describe, expect, it } from "vitest";
import { calls, compiled, policyOf, random } from "../../../../test/support/random-policies.ts";
import { verifies } from "../../../../test/support/verifies.ts";
import { NO_LABELS } from "../../manifest/labels.ts";
import { evaluatePolicy } from "../evaluate.ts";
import { policyWarnings } from "./ineffective-entries.ts";

const NOW = Date.UTC(2026, 5, 15, 12);
const labels = new Map([
  ["pay.refund", { ...NO_LABELS, effect: "irreversible" }],
  ["mail.send", NO_LABELS],
]);
const budget = () => ({ cells: 400_000, late: () => false });
const warned = (doc: object, known = labels) =>
  policyWarnings(compiled({ version: 1, ...doc }), { labels: known, now_ms: NOW, budget: budget() });

const amount = (...ops: [string, unknown][]) =>
  ops.map(([op, value]) => ({ path: "$args.amount", op, value }));
const rule = (id: string, action: string, more: object = {}) => ({ id, action, ...more });
const DENY_BIG = rule("big", "deny", { match: { tool: "pay.*" }, when: amount(["gt", 400]) });

describe("policyWarnings", () => {
  it.each([
    ["gt and lt", rule("r", "deny", { when: amount(["gt", 500], ["lt", 100]) }), "cannot be compared"],
    ["an allow", rule("r", "allow", { when: amount(["gt", 500], ["lt", 100]) }), "it never applies"],
    [
      "exists and absent",
      rule("r", "deny", { when: amount(["exists", undefined], ["absent", undefined]) }),
      "it never applies",
    ],
    [
      "eq and in",
      rule("r", "deny", { when: amount(["eq", "EUR"], ["in", ["USD", "GBP"]]) }),
      "no value meets all",
    ],
    [
      "eq and matches",
      rule("r", "deny", { when: amount(["eq", "EUR"], ["matches", "^U"]) }),
      "cannot be compared",
    ],
  ])("finds conditions that contradict each other: %s", (_name, entry, words) => {
    verifies("beyond.idle.contradiction");
    expect(warned({ rules: [entry] })).toEqual([expect.stringContaining(words)]);
  });

  it.each([
    [
      "an approval under a deny",
      rule("r", "require_approval", { match: { tool: "pay.refund" }, when: amount(["gt", 500]) }),
      "denied by rule big",
    ],
    [
      "an allow under a deny",
      rule("r", "allow", { match: { tool: "pay.refund" }, when: amount(["gt", 500]) }),
      "denied by rule big",
    ],
  ])("finds a rule that a stricter one covers: %s", (_name, entry, words) => {
    verifies("beyond.idle.shadowed");
    expect(warned({ rules: [DENY_BIG, entry] })).toEqual([
      `rule r: it never decides, because every call that it matches is ${words}`,
    ]);
  });

  it("holds several rules against one, and a limit against rules", () => {
    verifies("beyond.idle.shadowed");
    const under = rule("under", "deny", { when: amount(["lte", 400]) });
    const asks = rule("asks", "require_approval", {
      match: { tool: "pay.refund" },
      when: amount(["exists", undefined]),
    });
    const limit = {
      id: "few",
      max: 2,
      per: "run",
      window: "1h",
      action: "require_approval",
      match: { tool: "mail.send" },
    };
    const mail = rule("no-mail", "deny", { match: { tool: "mail.*" } });
    expect(warned({ rules: [DENY_BIG, under, asks, mail], limits: [limit] })).toEqual([
      "rule asks: it never decides, because every call that it matches is denied by rules big, under",
      "limit few: it never decides, because every call that it matches is denied by rule no-mail",
    ]);
  });

  it.each([
    [
      "a wider rule",
      {
        rules: [
          DENY_BIG,
          rule("r", "require_approval", { match: { tool: "pay.refund" }, when: amount(["gt", 300]) }),
        ],
      },
    ],
    [
      "a value that only one of them cannot compare",
      {
        rules: [
          rule("t", "deny", { when: amount(["eq", 5]) }),
          rule("r", "require_approval", { when: amount(["gt", 4], ["lt", 6]) }),
        ],
      },
    ],
    [
      "a pattern that a long text meets",
      {
        rules: [
          rule("t", "deny", { when: amount(["starts_with", "a"]) }),
          rule("r", "require_approval", { when: amount(["matches", "^a"]) }),
        ],
      },
    ],
    ["two denies", { rules: [DENY_BIG, { ...DENY_BIG, id: "again" }] }],
    [
      "an allow that lifts a window under an approval",
      {
        rules: [
          rule("a", "allow", { match: { tool: "pay.*" } }),
          rule("q", "require_approval", { match: { tool: "pay.*" } }),
        ],
        windows: [{ id: "w", hours: "09:00-17:00" }],
      },
    ],
    [
      "a freeze to come",
      { freezes: [{ id: "f", from: "2026-07-01T00:00:00Z", to: "2026-07-02T00:00:00Z" }] },
    ],
  ])("says nothing of %s", (_name, doc) => {
    verifies("beyond.idle.never-wrong");
    expect(warned(doc)).toEqual([]);
  });

  it("names tools and labels that no manifest declares, with the nearest name, where there are manifests", () => {
    verifies("beyond.idle.unmatched");
    const doc = {
      rules: [
        rule("name", "deny", { match: { tool: "pay.refnd" } }),
        rule("group", "deny", { match: { tool: "mial.*" } }),
        rule("one", "deny", { match: { tool: "{pay.refund,mail.sned}" } }),
        rule("label", "deny", { match: { data_class: "pi" } }),
      ],
      budgets: [{ id: "b", path: "$args.amount", max: 1, per: "run", window: "1h", match: { tool: "x" } }],
      claims: [{ name: "c", match: { tool: "pay.refund" }, unless: { tool: "mail.snd" }, at_least: "deny" }],
    };
    expect(warned(doc)).toEqual([
      'rule name: match.tool "pay.refnd" matches no declared tool; did you mean "pay.refund"?',
      'rule group: match.tool "mial.*" matches no declared tool; did you mean "mail.*"?',
      'rule one: match.tool names "mail.sned", which matches no declared tool; did you mean "mail.send"?',
      "rule label: match.data_class: no declared tool has this label",
      'budget b: match.tool "x" matches no declared tool',
      'claim "c": unless.tool "mail.snd" matches no declared tool; did you mean "mail.send"?',
    ]);
    expect(warned(doc, new Map())).toEqual([]);
  });

  it("names times that never come, and claims about no call", () => {
    verifies("beyond.idle.times", "beyond.idle.contradiction");
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    expect(
      warned({
        windows: [{ id: "w", days, hours: "22:00-06:00, 06:00-22:00" }],
        freezes: [{ id: "f", from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" }],
        claims: [
          { name: "none", when: amount(["exists", undefined], ["absent", undefined]), at_least: "deny" },
          { name: "excepted", match: { tool: "pay.refund" }, unless: { tool: "pay.*" }, at_least: "deny" },
        ],
      }),
    ).toEqual([
      "window w: it is open at all times, so its action never applies",
      "freeze f: it ended at 2026-01-02T00:00:00.000Z; remove it",
      'claim "none": no value meets all of its conditions on $args.amount, so it describes no call',
      'claim "excepted": unless excludes every call that it describes',
    ]);
  });

  it("ends after fifty warnings and counts the rest", () => {
    const rules = Array.from({ length: 60 }, (_, i) => rule(`r${i}`, "deny", { match: { tool: "none" } }));
    const all = warned({ rules });
    expect([all.length, all.at(-1)]).toEqual([51, "and 10 more"]);
  });
});

it("what it warns of, no call contradicts", { timeout: 120_000 }, () => {
  verifies("beyond.idle.never-wrong");
  const seen = { shadowed: 0, unmet: 0 };
  for (let seed = 0; seed < 60; seed++) {
    const r = random(seed);
    const { doc } = policyOf(r, false);
    const rules = (doc.rules ?? []).map((one, i) => ({ ...one, id: `r${i}` }));
    const policy = compiled({ ...doc, rules });
    const warnings = policyWarnings(policy, { labels: new Map(), now_ms: NOW, budget: budget() });
    const about = (words: string) =>
      new Set(warnings.filter((one) => one.includes(words)).map((one) => /^rule (\S+):/.exec(one)?.[1]));
    const [shadowed, never] = [about("it never decides"), about("it never applies")];
    seen.shadowed += shadowed.size;
    seen.unmet += about("no value meets").size;
    for (const { call, at_ms } of calls(r)) {
      const { rules: decided, findings } = evaluatePolicy(policy, call, at_ms);
      expect(
        decided.filter((id) => shadowed.has(id)),
        JSON.stringify([rules, call]),
      ).toEqual([]);
      expect(findings.filter(({ rule }) => rule !== null && never.has(rule))).toEqual([]);
    }
  }
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);
});
