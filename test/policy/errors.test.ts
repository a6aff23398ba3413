/** What is said where people stumble: each message tells what to do. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { speak } from "../support/io.ts";
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
  expect(err).toContain(
    "compensation.args.id: result.id is taken as plain text; write $result.id for the value there",
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
