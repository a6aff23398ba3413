/** Entries of a policy without effect, as the surfaces tell of them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loggedIn } from "../console/support/client.ts";
import { consoleServer } from "../console/support/server.ts";
import { speak } from "../support/io.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = "- {tool: pay.refund, effect: irreversible, permission: p}\n";
const CONDITIONS = "[{path: $args.amount, op: gt, value: 500}, {path: $args.amount, op: lt, value: 100}]";
const POLICY = `version: 1
rules:
  - {id: typo, match: {tool: pay.refnd}, action: deny}
  - {id: never, match: {tool: pay.refund}, when: ${CONDITIONS}, action: allow}
  - {id: stop, match: {tool: "pay.*"}, action: deny}
  - {id: ask, match: {tool: pay.refund}, action: require_approval}
`;
const WARNINGS = [
  'rule typo: match.tool "pay.refnd" matches no declared tool; did you mean "pay.refund"?',
  "rule never: no value meets all of its conditions on $args.amount, so it never applies",
  "rule ask: it never decides, because every call that it matches is denied by rule stop",
];

const folder = tempDir("warnings");
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return name;
};
file("m.yaml", MANIFESTS);
const svc = (...args: string[]) => speak(args, { cwd: folder });
const printed = WARNINGS.map((one) => `warning: ${one}\n`).join("");

describe("entries without effect", () => {
  it("are printed by the commands that check a policy, whose exit code stays", async () => {
    verifies("beyond.idle.commands");
    const policy = file("p.yaml", POLICY);
    const checked = await svc("policy", "check", policy, "-m", "m.yaml");
    expect(checked).toMatchObject({ code: 0, out: "ok: 4 rules, 0 tests\n", err: printed });
    const tested = await svc("policy", "test", policy, "-m", "m.yaml");
    expect(tested).toMatchObject({ code: 0, out: "0 passed\n", err: printed });
    file("svc.config.yaml", `policy: ${join(folder, "p.yaml")}\n`);
    const validated = await svc("validate", join(folder, "m.yaml"));
    expect(validated).toMatchObject({ code: 0, out: "ok: 1 tool manifests valid\n", err: printed });
    file("svc.config.yaml", "");
    const alone = await svc("policy", "check", policy, "-m", "missing.yaml");
    expect(alone.err).not.toContain("typo");
    expect(alone.err).toContain(WARNINGS[1]);
  });

  it("are in the answer to a published policy, and in the log of a server", async () => {
    verifies("beyond.idle.registry", "beyond.idle.log");
    const registry = tempDir("warned");
    const s = await testServer({
      manifests: MANIFESTS,
      policy: POLICY,
      config: `registry: {manifests: ${registry}/m, policies: ${registry}/p}\n`,
    });
    const logged = () =>
      s.logged
        .map((line) => JSON.parse(line) as { level: string; warning?: string })
        .filter(({ level, warning }) => level === "warn" && warning !== undefined)
        .map(({ warning }) => warning);
    await until(() => logged().length === WARNINGS.length, "the warnings of the start");
    expect(logged()).toEqual(WARNINGS);
    const publish = (yaml: string) => s.call("operator", "POST", "/v1/registry/policy", { yaml });
    expect((await publish(POLICY)).body).toEqual({
      version: "1",
      tests: { passed: 0, failed: 0 },
      warnings: WARNINGS,
    });
    expect((await publish("version: 1\n")).body.warnings).toEqual([]);
    writeFileSync(
      join(s.folder, "policy.yaml"),
      "version: 1\nfreezes: [{id: old, from: 2020-01-01, to: 2020-01-02}]\n",
    );
    expect((await s.call("admin", "POST", "/v1/reload", {})).status).toBe(200);
    await until(() => logged().length > WARNINGS.length, "the warning of the reload");
    expect(logged().at(-1)).toBe("freeze old: it ended at 2020-01-02T00:00:00.000Z; remove it");
  });

  it("are shown where the console checks a text, which is not called sound then", async () => {
    verifies("beyond.idle.console");
    const server = await consoleServer({
      manifests: MANIFESTS,
      policy: "version: 1\n",
      config: "console: login\n",
    });
    const operator = await loggedIn(server.url, "operator");
    const checked = async (yaml: string) =>
      (await operator.submit("/console/policy", { yaml, do: "check" })).text;
    const page = await checked(POLICY);
    expect(page).toContain("3 warnings:");
    for (const words of ["matches no declared tool", "so it never applies", "denied by rule stop"])
      expect(page).toContain(words);
    const sound = await checked("version: 1\n");
    expect(sound).not.toContain("warnings:");
    expect(sound).toContain('class="notice ok"');
    const claim = "claims: [{name: all wait, match: {tool: pay.refund}, at_least: deny}]\n";
    const wrong = await checked(`version: 1\n${claim}`);
    expect(wrong).toContain("1 of 1 claim is not proved.");
    expect(wrong).not.toContain('class="notice ok"');
  });
});

it("svc policy check says ok of a policy only where its claims are proved", async () => {
  verifies("beyond.claim.no-ok");
  const text = (at_least: string) => `version: 1
rules: [{id: r, match: {tool: pay.refund}, action: require_approval}]
claims:
  - {name: first, match: {tool: pay.refund}, at_least: require_approval}
  - {name: second, match: {tool: pay.refund}, at_least: ${at_least}}
`;
  const wrong = await svc("policy", "check", file("wrong.yaml", text("deny")), "-m", "m.yaml");
  expect(wrong.code).toBe(1);
  expect(wrong.out).not.toMatch(/^ok/m);
  expect(wrong.out).toMatch(
    /^counterexample {2}second: .*\n.*\nnot ok: 1 of 2 claims has a counterexample\n$/m,
  );
  const good = await svc("policy", "check", file("good.yaml", text("require_approval")), "-m", "m.yaml");
  expect(good).toMatchObject({ code: 0, out: "proved  first\nproved  second\nok: 1 rule, 0 tests\n" });
});
