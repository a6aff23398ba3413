/** Claims and differences as people meet them: the command line, the route, and the registry. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { speak } from "../support/io.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: irreversible, permission: p}
- {tool: crm.get, effect: read, permission: p}
`;
const RULES = (most: number) => `version: 1
rules:
  - {id: big, match: {tool: "pay.*"}, when: [{path: $args.amount, op: gt, value: ${most}}], action: require_approval}
  - {id: no-amount, match: {tool: "pay.*"}, when: [{path: $args.amount, op: absent}], action: deny}
`;
const CLAIM =
  'claims: [{name: over a thousand, match: {tool: "pay.*"}, when: [{path: $args.amount, op: gt, value: 1000}], at_least: require_approval}]\n';

const folder = tempDir("prove");
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return name;
};
writeFileSync(join(folder, "manifests.yaml"), MANIFESTS);
const svc = (...args: string[]) => speak([...args, "-m", "manifests.yaml"], { cwd: folder });

describe("svc policy check", () => {
  it("proves a claim, or shows a call against it and exits 1, or says why not and exits 2", async () => {
    verifies("beyond.claim.proved", "beyond.claim.counterexample-exit", "beyond.claim.incomplete-exit");
    for (const command of ["check", "test"]) {
      const proved = await svc("policy", command, file("good.yaml", RULES(500) + CLAIM));
      expect(proved.out).toContain("proved  over a thousand");
      expect(proved.code).toBe(0);
      const wrong = await svc("policy", command, file("wrong.yaml", RULES(5000) + CLAIM));
      expect(wrong.out).toContain(
        "counterexample  over a thousand: expected at least require_approval, got allow",
      );
      expect(wrong.out).toContain(
        '{"tool":"pay.refund","args":{"amount":1001},"actor":"a","effect":"irreversible"}',
      );
      expect(wrong.code).toBe(1);
    }
    const lists = Array.from({ length: 12 }, (_, i) => `{path: $args.l, op: contains, value: x${i}}`);
    const rules = lists.map((one, i) => `  - {id: r${i}, when: [${one}], action: deny}\n`).join("");
    const claim = "claims: [{name: never, at_least: deny}]\n";
    const open = await svc("policy", "check", file("open.yaml", `version: 1\nrules:\n${rules}${claim}`));
    expect(open.out).toMatch(/^incomplete {2}never: too many conditions check the elements of a list/m);
    expect(open.code).toBe(2);
  });

  it("warns of a flow that never takes effect", async () => {
    verifies("beyond.flow.idle");
    const flow = (id: string, after: string) =>
      `  - {id: ${id}, after: {${after}}, then: {tool: "crm.*", actor: bot}, action: deny}\n`;
    const flows =
      flow("slip", "tool: pay.refnd") +
      flow("label", "source: nowhere") +
      flow("good", "effect: irreversible");
    const { err, code } = await svc("policy", "check", file("flows.yaml", `version: 1\nflows:\n${flows}`));
    expect(err.trim().split("\n")).toEqual(
      [
        ["slip", '; did you mean "pay.refund"?'],
        ["label", ""],
      ].map(
        ([id, hint]) =>
          `warning: flow ${id}: after matches no declared tool, so the flow never takes effect${hint}`,
      ),
    );
    expect(code).toBe(0);
  });

  it("refuses a claim over a field that does not exist", async () => {
    verifies("beyond.claim.checked");
    const bad = await svc(
      "policy",
      "check",
      file("bad.yaml", "version: 1\nclaims: [{name: x, match: {tol: a}, at_least: deny}]\n"),
    );
    expect(bad.err).toContain("claims[0].match.tol: unknown key");
    expect(bad.code).toBe(1);
  });
});

const COUNTED = (id: string) =>
  `budgets: [{id: ${id}, match: {tool: pay}, path: $args.amount, max: 1000, per: tenant, window: 1d, action: deny}]`;

const FLOWING = (id: string) =>
  `flows: [{id: ${id}, after: {tool: crm.get}, then: {tool: pay}, action: require_approval}]`;
const ASKING = (groups: string, more = "") =>
  `version: 1\nrules:\n  - {id: r, match: {tool: pay.refund}, action: require_approval, approval: {groups: [${groups}]${more}}}\n`;
const GROUP = (group: string) => `approvals: {groups: [${group}]}\n`;
const UNPROVEN = "undo: {max_age: 30d, unproven: require_approval}";

describe("svc policy diff", () => {
  it("exits 2 where the second is looser, 0 where it is not, with an example for each class", async () => {
    verifies("beyond.diff.command");
    const [a, b] = [file("a.yaml", RULES(500)), file("b.yaml", RULES(900))];
    const looser = await svc("policy", "diff", a, b);
    expect(looser.out).toContain("looser: require_approval by big becomes allow");
    expect(looser.out).toContain('"amount":501');
    expect(looser.code).toBe(2);
    expect(looser.out).toMatch(/^ {2}was: .*big/m);
    const stricter = await svc("policy", "diff", b, a);
    expect(stricter.out).toContain("0 looser, 1 stricter, 0 other");
    expect(stricter.code).toBe(0);
    expect((await svc("policy", "diff", a, a)).out).toBe("the same decision for every call\n");
    const others = await svc("policy", "diff", file("f.yaml", ASKING("f")), file("g.yaml", ASKING("g")));
    expect(others.out).toContain("1 looser, 0 stricter, 0 other");
    expect(others.out).toMatch(/1 approver of f[\s\S]*1 approver of g/);
    expect(others.code).toBe(2);
  });

  it("names the declared tools that a change concerns, and says where it had to make a name up", async () => {
    verifies("beyond.diff.real-tools");
    const policy = (name: string, tool: string) =>
      file(name, `version: 1\nrules:\n  - {id: r, match: {tool: ${tool}}, action: deny}\n`);
    const nothing = file("nothing.yaml", "version: 1\n");
    const told = async (b: string) => (await svc("policy", "diff", nothing, b)).out.split("\n")[0];
    expect(await told(policy("all.yaml", '"*"'))).toMatch(
      /\(pay\.refund, crm\.get, tools without a manifest, such as \S+\)$/,
    );
    expect(await told(policy("pay.yaml", "pay.*"))).toMatch(/\(pay\.refund, tools.*\)$/);
    expect(await told(policy("new.yaml", "new.*"))).toMatch(
      /\(only tools without a manifest, such as new\.\S*\)$/,
    );
  });
});

describe("on a server", () => {
  let s: TestServer;
  beforeAll(async () => {
    s = await testServer({
      manifests: MANIFESTS,
      policy: RULES(500),
      config: "registry: {manifests: reg-m, policies: reg-p, loosening: second_admin}\n",
      keys: [{ name: "admin2", role: "admin" }],
    });
    mkdirSync(join(s.folder, "reg-m"), { recursive: true });
  });
  const publish = async (yaml: string) =>
    (await s.call("operator", "POST", "/v1/registry/policy", { yaml })).body.version as string;
  const activate = (version: string, key = "admin") =>
    s.call(key, "POST", `/v1/registry/policy/${version}/activate`);

  it.each([
    ["undo: {max_age: 30d, unproven: deny}", "", "undo differs"],
    ["approvals: {max_open_per_run: 1}", "", "approvals.max_open_per_run differs"],
    [COUNTED("s"), COUNTED("s2"), "budgets: s has a new id"],
    [FLOWING("s"), FLOWING("s2"), "flows: s has a new id"],
    [`${UNPROVEN}\napprovals: {quorum: 2}`, UNPROVEN, "undo.unproven requires approval"],
    [
      "content: {max_bytes: 1010000}",
      "content: {max_bytes: 1040000}",
      "content.max_bytes differs, and no call",
    ],
    ["content: {max_bytes: 20}", "content: {max_bytes: 21}", "content.max_bytes differs, and no call"],
  ])("does not call %s and %s the same: what came before a call decides", async (a, b, why) => {
    verifies("beyond.diff.never-wrong");
    const { body } = await s.call("operator", "POST", "/v1/policy/diff", {
      a: `version: 1\n${a}\n`,
      b: `version: 1\n${b}\n`,
    });
    expect([body.complete, body.covered.reasons.join("\n")]).toEqual([false, expect.stringContaining(why)]);
  });

  it("finds a bound that rose by one byte, and people who may decide sooner", async () => {
    verifies("beyond.diff.never-wrong");
    const bound = (most: number) => `version: 1\ncontent: {max_bytes: ${most}}\n`;
    for (const [a, b] of [
      [bound(1_000), bound(1_001)],
      [ASKING("f"), ASKING("f", ", escalate_after: 1m, escalate_to: [everyone]")],
      [ASKING("f"), ASKING("g")],
      [ASKING("f"), ASKING("f, g")],
      [ASKING("f", ", ttl: 1h"), ASKING("f", ", ttl: 2h")],
      // The approvers of a count are known only once it is used up.
      [`version: 1\napprovals: {quorum: 2}\n${FLOWING("s")}\n`, `version: 1\n${FLOWING("s")}\n`],
    ]) {
      const { body } = await s.call("operator", "POST", "/v1/policy/diff", { a, b });
      expect(body.looser.length, b).toBeGreaterThan(0);
    }
    for (const [a, b] of [
      [ASKING("f, g"), ASKING("g")],
      [ASKING("f", ", ttl: 2h"), ASKING("f", ", ttl: 1h")],
      [ASKING("f"), ASKING("f", ", quorum: 2")],
    ]) {
      const { body } = await s.call("operator", "POST", "/v1/policy/diff", { a, b });
      expect([body.looser, body.stricter.length > 0], b).toEqual([[], true]);
    }
  });

  it("POST /v1/policy/diff compares with the policy in force, for operators", async () => {
    verifies("beyond.diff.route", "beyond.diff.roles");
    const { status, body } = await s.call("operator", "POST", "/v1/policy/diff", { b: RULES(900) });
    expect(status).toBe(200);
    expect(body).toMatchObject({ complete: true, stricter: [], other: [] });
    expect(body.looser).toHaveLength(1);
    expect(body.looser[0]).toMatchObject({ from: "require_approval", to: "allow", a: { rules: ["big"] } });
    const back = await s.call("operator", "POST", "/v1/policy/diff", { a: RULES(900), b: RULES(500) });
    expect(back.body.looser).toEqual([]);
    expect((await s.call("operator", "POST", "/v1/policy/diff", { b: "version: 2" })).status).toBe(400);
    expect((await s.call("approver", "POST", "/v1/policy/diff", { b: RULES(900) })).status).toBe(403);
  });

  it("the registry refuses a policy that is not what it claims", async () => {
    verifies("beyond.claim.registry");
    const refused = await activate(await publish(RULES(5000) + CLAIM));
    expect(refused.status).toBe(409);
    expect(refused.body.error).toContain(
      'claim "over a thousand": expected at least require_approval, got allow',
    );
  });

  it("a looser policy waits for another admin; the same one twice does not do", async () => {
    verifies("beyond.diff.second-admin");
    const version = await publish(RULES(900));
    expect(await activate(version)).toMatchObject({
      status: 202,
      body: { status: "draft", waiting_for: "another admin" },
    });
    expect((await activate(version)).status).toBe(202);
    const done = await activate(version, "admin2");
    expect(done).toMatchObject({ status: 200, body: { status: "active" } });
    const stricter = await publish(RULES(100) + GROUP("f"));
    expect(await activate(stricter)).toMatchObject({ status: 200, body: { status: "active" } });
    const others = await publish(RULES(100) + GROUP("g"));
    expect(await activate(others)).toMatchObject({ status: 202, body: { waiting_for: "another admin" } });
    expect((await activate(others, "admin2")).body.status).toBe("active");
  });

  const activations = async () =>
    (await s.call("auditor", "GET", "/v1/search/records?event=policy_activated")).body.records as {
      actor: string;
      detail: string;
    }[];
  const change = async (name: string, fields: object) => {
    const { keys } = (await s.call("admin", "GET", "/v1/keys")).body;
    const { index } = keys.find((key: { name: string }) => key.name === name);
    expect((await s.call("admin", "PATCH", `/v1/keys/${index}`, fields)).status).toBe(200);
  };

  it("both admins are named where it takes effect, and the one who waits in the log", async () => {
    verifies("beyond.diff.second-admin-recorded");
    const version = await publish(RULES(700));
    expect((await activate(version)).status).toBe(202);
    const before = await activations();
    expect(before.filter(({ detail }) => detail.startsWith(`version ${version},`))).toEqual([]);
    expect(s.logged.join("")).toContain(
      `"version":"${version}","by":"admin","msg":"a looser policy needs the approval of another admin"`,
    );
    const { hash } = (await activate(version, "admin2")).body;
    const records = await activations();
    expect(records).toHaveLength(before.length + 1);
    expect(records).toContainEqual(
      expect.objectContaining({ actor: "admin2", detail: `version ${version}, ${hash}; with admin` }),
    );
    const alone = await publish(RULES(150));
    const { body } = await activate(alone);
    expect(await activations()).toContainEqual(
      expect.objectContaining({ actor: "admin", detail: `version ${alone}, ${body.hash}` }),
    );
  });

  it.each([
    ["is disabled", { disabled: true }, { disabled: false }],
    ["is an operator", { role: "operator" }, { role: "admin" }],
    ["is bound to a tenant", { tenant: "t", tenant_only: true }, { tenant: null, tenant_only: false }],
  ])("an activation counts no longer once its admin %s", async (_, gone, back) => {
    verifies("beyond.diff.second-admin-now");
    const version = await publish(`${RULES(1000)}# ${JSON.stringify(gone)}\n`);
    expect((await activate(version, "admin2")).status).toBe(202);
    await change("admin2", gone);
    expect((await activate(version, "admin")).status).toBe(202);
    await change("admin2", back);
    // The one who activated last is the first by now.
    expect((await activate(version, "admin")).status).toBe(202);
    expect((await activate(version, "admin2")).body.status).toBe("active");
    expect((await activate(await publish(RULES(100)))).body.status).toBe("active");
  });
});
