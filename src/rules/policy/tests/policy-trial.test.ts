/** A call that is tried on a policy, and kept in its text as a test. */
import { describe, expect, it } from "vitest";
import { verifies } from "../../../../test/support/verifies.ts";
import { ProblemsError } from "../../../kernel/errors.ts";
import { NO_LABELS } from "../../manifest/labels.ts";
import { compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import { addTestToPolicy } from "./add-test.ts";
import { type TypedCall, tryCall } from "./policy-trial.ts";
import { runPolicyTests } from "./tests.ts";

const POLICY = `version: 1
rules:
  - {id: out, match: {effect: irreversible}, when: [{path: $args.to, op: exists}], action: deny}
  - {id: routine, match: {tool: mail.receipt}, action: allow}
windows:
  - {id: office, match: {tool: mail.receipt}, hours: "09:00-17:00"}
`;
const policy = compilePolicy(loadPolicy(POLICY, "p"));
const BLANK: TypedCall = {
  ...{ tool: "mail.send", args: "", actor: "", at: "" },
  ...{ tenant: "", environment: "", earlier: "", repeat: "" },
};
const labels = new Map([["mail.send", { ...NO_LABELS, effect: "irreversible" }]]);
const NOON = Date.UTC(2026, 0, 1, 12);
const NIGHT = Date.UTC(2026, 0, 1, 22);
const tried = (typed: Partial<TypedCall>, now_ms = NOON) =>
  tryCall(policy, { ...BLANK, ...typed }, labels, now_ms);

describe("a call that is tried", () => {
  it("becomes a test that passes without manifests, with labels and time only where they decide", () => {
    const calls = [
      [
        { args: "to: x", at: "2026-01-01T20:00:00Z" },
        { tool: "mail.send", args: { to: "x" }, effect: "irreversible" },
      ],
      [{ args: '{"body": 1}' }, { tool: "mail.send", args: { body: 1 } }],
    ] as const;
    for (const [typed, input] of calls) {
      const { test, declared } = tried(typed);
      expect([test.input, declared]).toEqual([input, true]);
      const kept = addTestToPolicy(POLICY, test);
      expect(
        runPolicyTests(compilePolicy(loadPolicy(kept, "p")), { manifestFor: () => null, now_ms: NIGHT }),
      ).toMatchObject([{ ok: true }]);
    }
    expect(tried({ args: "to: x" }).reads).toEqual(["$args.to"]);
  });

  it("is made now where no time is typed, and is kept with that time where the clock has a say", () => {
    verifies("beyond.playground.now");
    const office = { tool: "mail.receipt", environment: "x" };
    const doc = loadPolicy(POLICY.replace("action: allow}", "action: require_approval}"), "p");
    const tryAt = (now_ms: number) => tryCall(compilePolicy(doc), { ...BLANK, ...office }, labels, now_ms);
    expect(tryAt(NOON).action).toBe("require_approval");
    const night = tryAt(NIGHT);
    expect([night.action, night.rules]).toEqual(["deny", ["office"]]);
    expect(night.test.input.at).toBe("2026-01-01T22:00:00.000Z");
    const kept = compilePolicy({ ...doc, tests: [night.test, tryAt(NOON).test] });
    for (const now_ms of [NOON, NIGHT])
      expect(runPolicyTests(kept, { manifestFor: () => null, now_ms })).toMatchObject([
        { ok: true },
        { ok: true },
      ]);
  });

  it("shows what an allow lifts", () => {
    const found = tried({ tool: "mail.receipt", at: "2026-01-01T20:00:00Z" });
    expect(found).toMatchObject({ action: "allow", rules: ["routine"], declared: false });
    expect(found.spoke.map(({ rule, lifted }) => [rule, lifted])).toEqual([
      ["office", true],
      ["routine", false],
    ]);
  });

  it("names the field that is wrong", () => {
    const wrong: [Partial<TypedCall>, string][] = [
      [{ args: "{a: [" }, "arguments:1"],
      [{ at: "yesterday" }, "at: "],
      [{ repeat: "many" }, "repeat: "],
      [{ repeat: "1e9" }, "repeat: "],
      [{ earlier: "{tool: x}" }, "earlier: "],
      [{ earlier: "- {tol: x}" }, "earlier[0]"],
    ];
    for (const [typed, start] of wrong) {
      const problem = () => tried(typed);
      expect(problem).toThrow(ProblemsError);
      expect(problem, start).toThrow(start);
    }
  });
});

describe("a test that is kept", () => {
  const test = {
    name: "a: b",
    input: { tool: "x", args: { "c d": "# no\nmore" } },
    expect: "allow",
  } as const;
  const LINE = '{name: "a: b", input: {tool: x, args: {c d: "# no\\nmore"}}, expect: allow}\n';

  it.each([
    ["no tests yet", "# mine\nversion: 1\n", `# mine\nversion: 1\ntests:\n  - ${LINE}`],
    ["no line end", "version: 1", `version: 1\ntests:\n  - ${LINE}`],
    [
      "tests in the middle",
      "version: 1\ntests:\n- {name: x, input: {tool: y}, expect: allow} # why\n# then\nrisk: {}\n",
      `version: 1\ntests:\n- {name: x, input: {tool: y}, expect: allow} # why\n- ${LINE}# then\nrisk: {}\n`,
    ],
  ])("leaves every other line alone: %s", (_name, before, after) => {
    expect(addTestToPolicy(before, test)).toBe(after);
  });

  it.each([
    "{version: 1}",
    "version: 1\ntests: []\n",
    "version: 1\ntests: [{name: x, input: {tool: y}, expect: allow}]\n",
  ])("finds its place in other shapes: %j", (before) => {
    expect(loadPolicy(addTestToPolicy(before, test), "p").tests?.at(-1)).toEqual(test);
  });

  it("refuses what would not load", () => {
    expect(() => addTestToPolicy("version: 1\n", { ...test, rule: "nobody" })).toThrow("add it by hand");
    expect(() => addTestToPolicy("version: 2\n", test)).toThrow(ProblemsError);
  });
});
