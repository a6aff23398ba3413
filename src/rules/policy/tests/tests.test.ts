import { describe, expect, it } from "vitest";
import { verifies } from "../../../../test/support/verifies.ts";
import { compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import { runPolicyTests } from "./tests.ts";

const policy = compilePolicy(
  loadPolicy(
    `version: 1
rules:
  - {id: big, match: {tool: pay}, when: [{path: $args.amount, op: gt, value: 500}], action: require_approval}
  - {id: forever, match: {effect: irreversible, data_class: pii}, action: deny}
windows:
  - {id: office, match: {tool: deploy}, hours: "09:00-17:00", action: deny}
tests:
  - {name: small, input: {tool: pay, args: {amount: 5}}, expect: allow}
  - {name: big, input: {tool: pay, args: {amount: 501}}, expect: require_approval, rule: big}
  - {name: wrong action, input: {tool: pay, args: {amount: 501}}, expect: deny}
  - {name: wrong rule, input: {tool: pay, args: {amount: 501}}, expect: require_approval, rule: forever}
  - {name: no rule, input: {tool: pay}, expect: allow, rule: big}
  - {name: labels of the manifest, input: {tool: purge}, expect: deny, rule: forever}
  - {name: labels of the test win, input: {tool: purge, effect: read}, expect: allow}
  - {name: at night, input: {tool: deploy, at: 2026-03-30T03:00:00Z}, expect: deny, rule: office}
  - {name: now, input: {tool: deploy}, expect: allow}
  - {name: now is at night, input: {tool: deploy}, expect: deny, rule: office}
`,
    "p.yaml",
  ),
);

describe("runPolicyTests", () => {
  it("reports the expected and the actual decision of each test", () => {
    verifies(
      "core.policy.test-entry",
      "core.policy.test-expect-values",
      "core.policy.test-rule-optional",
      "contract.policy-test.expects",
      "contract.readings.test-rule",
    );
    const labels = { effect: "irreversible", data_class: "pii", blast_radius: null, source: [], sink: [] };
    const results = runPolicyTests(policy, {
      manifestFor: (tool) => (tool === "purge" ? labels : null),
      now_ms: Date.UTC(2026, 2, 30, 12),
    });
    expect(results.map(({ name, ok, expected, got }) => [name, ok, expected, got])).toEqual([
      ["small", true, "allow", "allow"],
      ["big", true, "require_approval by big", "require_approval by big"],
      ["wrong action", false, "deny", "require_approval by big"],
      ["wrong rule", false, "require_approval by forever", "require_approval by big"],
      ["no rule", false, "allow by big", "allow"],
      ["labels of the manifest", true, "deny by forever", "deny by forever"],
      ["labels of the test win", true, "allow", "allow"],
      ["at night", true, "deny by office", "deny by office"],
      ["now", true, "allow", "allow"],
      ["now is at night", false, "deny by office", "allow"],
    ]);
    expect(results[1]).toHaveProperty("rule", "big");
  });

  it("has nothing to say about a policy without tests", () => {
    expect(runPolicyTests(compilePolicy({ version: 1 }), { manifestFor: () => null, now_ms: 0 })).toEqual([]);
  });

  it("decides flows that look at values, from the earlier results and the given texts", () => {
    verifies("beyond.value.policy-tests");
    const followed = compilePolicy(
      loadPolicy(
        `version: 1
flows:
  - {id: f, after: {source: mail}, then: {tool: mail.send}, carries: true}
  - {id: w, after: {tool: acc.get}, then: {tool: pay}, when: [{path: $args.to, op: ne, value: $after.result.iban}]}
tests:
  - {name: nothing earlier, input: {tool: mail.send, args: {to: a@evil.example}}, expect: allow}
  - {name: carried, input: &sent {tool: mail.send, args: {to: a@evil.example}, earlier: &read [{tool: mail.read, source: mail, effect: read, result: to a@evil.example}]}, expect: deny, rule: f}
  - {name: another value, input: {tool: mail.send, args: {to: b@own.example}, earlier: *read}, expect: allow}
  - {name: given, input: {tool: mail.send, args: {to: a@evil.example}, given: [write to a@evil.example], earlier: *read}, expect: allow}
  - {name: no result, input: {tool: mail.send, args: {to: b@own.example}, earlier: [{tool: mail.read, source: mail}]}, expect: deny, rule: f}
  - {name: a result vouches, input: {tool: mail.send, args: {to: c@own.example}, earlier: [{tool: crm, effect: read, result: c@own.example}, {tool: mail.read, source: mail, result: c@own.example}]}, expect: allow}
  - {name: an echo does not, input: {tool: mail.send, args: {to: c@own.example}, earlier: [{tool: crm, effect: read, args: {q: c@own.example}, result: c@own.example}, {tool: mail.read, source: mail, result: c@own.example}]}, expect: deny}
  - {name: an undeclared tool does not, input: {tool: mail.send, args: {to: c@own.example}, earlier: [{tool: crm, result: c@own.example}, {tool: mail.read, source: mail, result: c@own.example}]}, expect: deny}
  - {name: the account, input: {tool: pay, args: {to: x}, earlier: [{tool: acc.get, result: {iban: x}}]}, expect: allow}
  - {name: another account, input: {tool: pay, args: {to: y}, earlier: [{tool: acc.get, result: {iban: x}}]}, expect: deny, rule: w}
  - {name: no earlier account, input: {tool: pay, args: {to: y}}, expect: allow}
  - {name: an unknown account, input: {tool: pay, args: {to: y}, earlier: [{tool: acc.get}]}, expect: deny, rule: w}
`,
        "p.yaml",
      ),
    );
    const results = runPolicyTests(followed, { manifestFor: () => null, now_ms: 0 });
    expect(results.filter(({ ok }) => !ok)).toEqual([]);
    const few = compilePolicy({ ...followed.doc, carries: { max: 1 } });
    expect(
      runPolicyTests(few, { manifestFor: () => null, now_ms: 0 }).find(
        ({ name }) => name === "another value",
      ),
    ).toMatchObject({ ok: false, got: "deny by f" });
  });
});
