/** `svc policy new`: a first policy without a tool server, from answers or from an example. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { ROOT } from "../support/files.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
beforeEach(() => {
  folder = tempDir("policy-new");
});
const svc = (args: string[], answers?: string[]) =>
  speak(args, { cwd: folder, ...(answers === undefined ? {} : { answers }) });
const written = (name = "policy.yaml") => readFileSync(join(folder, name), "utf8");

describe("svc policy new", () => {
  it("asks, and writes a policy whose tests pass", async () => {
    verifies("beyond.authors.new-questions");
    const { code, out } = await svc(
      ["policy", "new"],
      ["", "y", "payments.refund", "", "much", "-1", "250", "100"],
    );
    expect(code).toBe(0);
    expect(out).toContain("wrote policy.yaml: 2 rules, 5 tests passed");
    expect(written()).toMatch(/^# yaml-language-server: \$schema=\/.*policy\.schema\.json\n/);
    expect(written()).toMatch(/path: \$args\.amount\n\s+op: gt\n\s+value: 250\n/);
    expect(written()).toMatch(/id: calls-per-hour\n\s+max: 100\n/);
    expect(await svc(["policy", "test", "policy.yaml"])).toMatchObject({
      code: 0,
      out: expect.stringContaining("5 passed"),
    });
  });

  it("accepts a no to everything", async () => {
    verifies("beyond.authors.new-questions");
    await svc(["policy", "new", "--out", "open.yaml"], ["n", "no", "", "0"]);
    expect(written("open.yaml")).not.toMatch(/rules:|limits:|content:/);
    expect((await svc(["policy", "check", "open.yaml"])).out).toBe("ok: 0 rules, 1 test\n");
  });

  it("writes the answers as text, never as further keys", async () => {
    verifies("beyond.authors.new-quoting");
    const evil = 'a"\nrules: [] # payments.*';
    const { code } = await svc(["policy", "new"], ["n", "n", evil, '["x: {y"]', "5", "0"]);
    expect(code).toBe(0);
    const { out } = await svc(["policy", "check", "policy.yaml"]);
    expect(out).toBe("ok: 1 rule, 1 test\n");
    const wrong = await svc(
      ["policy", "new", "--force"],
      ["n", "n", "{a", "pay", "x y", "$result.id", "amount", "5", "0"],
    );
    expect(wrong.err).toContain("Write a tool name or a glob, such as payments.*");
    expect(wrong.err.match(/Write the argument's name/g)).toHaveLength(2);
    expect(wrong.code).toBe(0);
  });

  it("copies every example, each with passing tests", async () => {
    verifies("beyond.authors.new-example");
    const names = readdirSync(join(ROOT, "examples/policies")).map((file) => file.replace(".yaml", ""));
    for (const name of names) {
      const { code, out } = await svc(["policy", "new", "--example", name, "--out", `${name}.yaml`]);
      expect([code, out], name).toEqual([0, expect.stringContaining(`wrote ${name}.yaml: `)]);
      expect(written(`${name}.yaml`).match(/yaml-language-server/g), name).toHaveLength(1);
    }
    for (const args of [["--example", "../starter"], ["--example", "no"], ["--example"], []]) {
      const { code, err } = await svc(["policy", "new", "--out", "x.yaml", ...args]);
      expect([code, err]).toEqual([1, expect.stringContaining("deploys, email, exports")]);
      expect(existsSync(join(folder, "x.yaml"))).toBe(false);
    }
  });

  it("replaces no file without --force", async () => {
    verifies("beyond.authors.new-keeps");
    writeFileSync(join(folder, "policy.yaml"), "version: 1\n");
    const kept = await svc(["policy", "new", "--example", "starter"]);
    expect([kept.code, kept.err]).toEqual([1, expect.stringContaining("replace it with --force")]);
    expect(written()).toBe("version: 1\n");
    expect((await svc(["policy", "new", "--example", "starter", "--force"])).code).toBe(0);
    expect(written()).toContain("irreversible-in-prod");
  });

  it("warns of a rule that never fires once it is checked", async () => {
    const rules = "- {id: a, action: deny}\n- {id: b, match: {tool: x}, action: require_approval}\n";
    writeFileSync(join(folder, "idle.yaml"), `version: 1\nrules:\n${rules}`);
    const { code, err } = await svc(["policy", "check", "idle.yaml"]);
    expect([code, err]).toEqual([0, expect.stringMatching(/^warning: .*\bb\b/m)]);
  });
});

interface FieldSchema {
  properties?: Record<string, FieldSchema>;
  items?: FieldSchema;
  anyOf?: FieldSchema[];
  oneOf?: FieldSchema[];
  description?: string;
}

it.each(["policy", "manifest", "config"])("describes every field in the JSON schema of a %s", (kind) => {
  verifies("beyond.authors.schema-words");
  const bare: string[] = [];
  let fields = 0;
  const walk = (schema: FieldSchema, path: string): void => {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      fields++;
      if (!/\S \S/.test(field.description ?? "")) bare.push(`${path}.${name}`);
      walk(field, `${path}.${name}`);
    }
    if (schema.items !== undefined) walk(schema.items, `${path}[]`);
    for (const form of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) walk(form, path);
  };
  walk(JSON.parse(readFileSync(join(ROOT, `schemas/${kind}.schema.json`), "utf8")), "");
  expect(bare).toEqual([]);
  expect(fields).toBeGreaterThan(60);
});
