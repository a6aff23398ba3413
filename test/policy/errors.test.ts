/** Messages at the usual mistakes: each one says what to do. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { speak } from "../support/io.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("stumble");
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return name;
};

it("svc validate warns of tools that nobody declared and of a forgotten $", async () => {
  verifies("beyond.errors.validate-warns");
  const path = file(
    "m.yaml",
    `
- {tool: crm.delete, effect: irreversible, permission: p}
- tool: crm.create
  effect: compensable
  permission: p
  requires: [crm.opne]
  before: {tool: crm.finds, args: {id: args.id}}
  compensation: {tool: crm.delet, args: {id: result.id}}
  verification: {tool: crm.get, args: {id: $result.id}, expect: {gone: true}}
`,
  );
  const { code, out, err } = await speak(["validate", join(folder, path)], { cwd: folder });
  expect({ code, out }).toEqual({ code: 0, out: "ok: 2 tool manifests valid\n" });
  expect(err).toContain("crm.create: requires: crm.opne has no manifest here, so it can never have run");
  expect(err).toContain(
    'crm.create: compensation.tool: crm.delet has no manifest here; did you mean "crm.delete"?',
  );
  expect(err).toContain("crm.create: verification.tool: crm.get has no manifest here");
  expect(err).toContain("crm.create: before.tool: crm.finds has no manifest here");
  expect(err).toContain(
    "compensation.args.id: result.id is plain text; write $result.id for the value there",
  );
});

it("a failing policy test names the rules that decided", async () => {
  verifies("beyond.errors.test-names-rules");
  const policy = file(
    "p.yaml",
    `version: 1
rules: [{id: big, when: [{path: $args.n, op: gt, value: 5}], action: deny}]
tests: [{name: nine, input: {tool: t, args: {n: 9}}, expect: allow}]
`,
  );
  const { code, out } = await speak(["policy", "test", policy, "-m", "m.yaml"], { cwd: folder });
  expect(out).toContain("FAIL nine: expected allow, got deny by big");
  expect(code).toBe(1);
});

it("a policy test without a time is judged now, on the command line and in the registry", async () => {
  verifies("beyond.errors.test-now");
  const frozen = (from: string, to: string) => `version: 1
freezes: [{id: freeze, from: ${from}, to: ${to}}]
tests: [{name: a call, input: {tool: t}, expect: allow}]
`;
  const during = frozen("2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
  const over = frozen("2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z");
  const tested = (text: string) =>
    speak(["policy", "test", file("frozen.yaml", text), "-m", "m.yaml"], { cwd: folder });
  expect(await tested(during)).toMatchObject({
    code: 1,
    out: "FAIL a call: expected allow, got deny by freeze\n0 passed, 1 failed\n",
  });
  expect(await tested(over)).toMatchObject({ code: 0, out: "ok  a call\n1 passed\n" });
  const policies = tempDir("registered");
  const s = await testServer({ config: `registry: {manifests: ${policies}/m, policies: ${policies}/p}\n` });
  const published = (yaml: string) => s.call("operator", "POST", "/v1/registry/policy", { yaml });
  expect((await published(during)).body.error).toContain("expected allow, got deny by freeze");
  expect((await published(over)).status).toBe(201);
  const doctor = await speak(["doctor", "--policy", file("frozen.yaml", during), "-m", "m.yaml"], {
    cwd: folder,
  });
  expect(doctor.out).toContain('test "a call" expected allow, got deny by freeze');
});

it("an undeclared tool keeps its reason, with the nearest name that the run may call as a hint", async () => {
  verifies("beyond.errors.nearest-tool");
  const s = await testServer({});
  const ask = async (run_id: string, tool: string) =>
    (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool, args: {}, reason: "r" })).body;
  await s.call("agent", "POST", "/v1/runs", { run_id: "writes", permissions: ["crm.write"] });
  await s.call("agent", "POST", "/v1/runs", { run_id: "none", permissions: [] });
  const refused = { decision: "block", reasons: ["no manifest is registered for this tool"] };
  const hints = ["a tool with a name close to this one is registered: crm.create"];
  expect(await ask("writes", "crm.craete")).toEqual({ ...refused, hints });
  expect(await ask("writes", "weather.today")).toEqual(refused);
  // A caller that guesses learns nothing about calls outside the run's scope.
  expect(await ask("none", "crm.craete")).toEqual(refused);
});

it("a key made without permissions says that it can request none", async () => {
  verifies("beyond.errors.key-without-permissions");
  const add = (...more: string[]) => speak(["keys", "add", ...more, "--keys", "keys.yaml"], { cwd: folder });
  const said = "this key has no --max-permissions";
  expect((await add("bare", "--role", "agent")).err).toContain(said);
  expect((await add("able", "--role", "agent", "--max-permissions", "crm.*")).err).not.toContain(said);
  expect((await add("person", "--role", "auditor")).err).not.toContain(said);
});
