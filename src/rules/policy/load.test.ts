import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { verifies } from "../../../test/support/verifies.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { valueHash } from "../../kernel/hash.ts";
import { compilePolicy, EMPTY_POLICY } from "./compile.ts";
import { loadPolicy } from "./load.ts";
import { policySchema } from "./schema.ts";

interface Refused {
  name: string;
  text: string;
  problems?: string[];
  contains?: string[];
}

const file = new URL("../../../test/cases/policy/refused.yaml", import.meta.url);
const cases = parse(readFileSync(file, "utf8")) as Refused[];

function problemsOf(text: string): readonly string[] {
  try {
    loadPolicy(text, "p.yaml");
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
  return [];
}

describe("a policy that must be refused", () => {
  it.each(cases)("$name", ({ text, problems, contains }) => {
    verifies(
      "core.policy.version-is-1",
      "core.version.policy",
      "ops.limit.retention-days",
      "ops.retention.default-days",
    );
    const got = problemsOf(text);
    if (problems !== undefined) expect(got).toEqual(problems);
    for (const part of contains ?? []) expect(got.join("\n")).toContain(part);
    expect(got.length).toBeGreaterThan(0);
  });
});

describe("a policy that an attacker wrote", () => {
  it.each([
    ["flow nesting", `version: 1\nrules: ${"[".repeat(100_000)}`],
    ["closed flow nesting", `${"[".repeat(50_000)}${"]".repeat(50_000)}`],
    ["map nesting", "{a: ".repeat(50_000)],
    ["sequence nesting", `${"- ".repeat(50_000)}x`],
    ["key nesting", `${"? ".repeat(50_000)}x`],
    ["block nesting", Array.from({ length: 1_000 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
  ])("%s is refused before it can exhaust the stack", (_, text) => {
    expect(problemsOf(text).join("\n")).toContain("nesting is deeper than 64 levels");
  });

  it("cannot multiply itself with aliases", () => {
    const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (const [from, to] of ["ab", "bc", "cd", "de", "ef", "fg"]) {
      bomb.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(",")}]`);
    }
    expect(problemsOf(bomb.join("\n")).join("\n")).toContain("aliases repeat too much");
    expect(problemsOf("version: &v [*v]").join("\n")).toMatch(/alias|nesting/i);
  });

  it("may reuse a value with an alias", () => {
    const text =
      "version: 1\nrules:\n  - {id: a, action: require_approval, approval: &t {quorum: 2}}\n  - {id: b, action: require_approval, approval: *t}\n";
    expect(loadPolicy(text, "p.yaml").rules?.[1]?.approval).toEqual({ quorum: 2 });
  });

  it("cannot bring patterns that cost too much in all", () => {
    const rules = Array.from({ length: 300 }, (_, i) => ({
      id: `r${i}`,
      when: [{ path: "$args.x", op: "matches", value: "[^\\p{L}\\p{N}]".repeat(20) }],
      action: "deny",
    }));
    expect(problemsOf(JSON.stringify({ version: 1, rules })).join("\n")).toContain("too large in total");
    const long = {
      id: "r",
      when: [{ path: "$args.x", op: "matches", value: "a".repeat(1_000_000) }],
      action: "deny",
    };
    expect(problemsOf(JSON.stringify({ version: 1, rules: [long] })).join("\n")).toContain(
      "too large in total",
    );
    long.when[0]!.value = "a".repeat(1_001);
    expect(problemsOf(JSON.stringify({ version: 1, rules: [long] })).join("\n")).toContain(
      "longer than 1000 characters",
    );
  });

  it("hears of two hundred problems and not of all", () => {
    const text = `version: 1\n${Array.from({ length: 500 }, (_, i) => `k${i}: 1`).join("\n")}`;
    const problems = problemsOf(text);
    expect(problems).toHaveLength(201);
    expect(problems[200]).toBe("p.yaml: and 300 more problems");
  });
});

describe("a policy that is fine", () => {
  it("keeps the written text, and hashes it", () => {
    const text = "# comment\nversion: 1\nrules:\n  - id: r\n    action: deny\n";
    const doc = loadPolicy(text, "p.yaml");
    expect(doc).toEqual({ version: 1, rules: [{ id: "r", action: "deny" }] });
    expect(compilePolicy(doc).hash).toBe(valueHash({ version: 1, rules: [{ id: "r", action: "deny" }] }));
    const reordered = loadPolicy('{"rules": [{"action": "deny", "id": "r"}], "version": 1}', "q.yaml");
    expect(compilePolicy(reordered).hash).toBe(compilePolicy(doc).hash);
  });

  it("may use every section at once", () => {
    verifies("core.policy.retention-section", "ops.retention.rules");
    const text = `
version: 1
rules:
  - id: big-refunds
    match: {tool: "payments.*", actor: "*", tenant: "*", environment: prod, effect: irreversible, data_class: pii}
    when: [{path: $args.amount, op: gt, value: 500}]
    action: require_approval
    reason: refunds over 500 need a person
    approval: {groups: [finance], quorum: 2, ttl: 4h, escalate_after: 30m, escalate_to: [finance-leads]}
content: {secrets: deny, pii: warn, injection: warn, max_bytes: 200000}
risk:
  weights: {effect: {irreversible: 60}, blast_radius: {org: 30}, data_class: {pii: 10}, environment: {prod: 5}}
  require_approval_at: 60
  deny_at: 90
limits:
  - {id: mail-rate, match: {tool: "mail.*"}, max: 20, per: actor, window: 1h, action: deny}
budgets:
  - {id: spend, match: {tool: "payments.*"}, path: $args.amount, max: 1000, per: tenant, window: 1d, warn_at: 0.8, action: require_approval}
windows:
  - {id: office, match: {tool: "deploy.*"}, days: [mon, tue, wed, thu, fri], hours: "09:00-17:00", tz: Europe/Berlin, action: deny, reason: office hours only}
freezes:
  - {id: year-end, match: {tool: "*"}, from: 2026-12-20T00:00:00Z, to: 2027-01-03T00:00:00Z, action: deny, reason: change freeze}
approvals: {ttl: 24h, quorum: 1, four_eyes: false, max_open_per_run: 100}
retention: {default_days: 30, rules: [{match: {tool: "payments.*"}, days: 365}]}
tests:
  - {name: n, input: {tool: payments.refund, args: {amount: 5}, actor: a, tenant: t, environment: prod, at: 2026-06-01T10:00:00Z}, expect: allow}
`;
    const policy = compilePolicy(loadPolicy(text, "p.yaml"));
    expect(
      policy.rules.size +
        policy.limits.size +
        policy.budgets.size +
        policy.windows.size +
        policy.freezes.size,
    ).toBe(5);
    expect(policy.retention).toEqual({
      default_days: 30,
      rules: [{ match: { tool: "payments.*" }, days: 365 }],
    });
    expect(z.toJSONSchema(policySchema, { unrepresentable: "any" })).toMatchObject({
      additionalProperties: false,
    });
  });

  it("has the documented defaults", () => {
    verifies("contract.approval.four-eyes-default");
    expect(EMPTY_POLICY.approvals).toEqual({
      groups: [],
      quorum: 1,
      ttl_ms: 24 * 3_600_000,
      escalate_after_ms: null,
      escalate_to: [],
      four_eyes: false,
      max_open_per_run: 100,
      show: "arguments",
      flood: null,
    });
    expect(EMPTY_POLICY.retention).toBeNull();
    expect(EMPTY_POLICY.risk).toBeNull();
  });
});
