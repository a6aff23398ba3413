/** The registry from the command line: the same operations as the routes, with messages that name the next step. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";

let folder = "";
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const svc = (...args: string[]) => speak(args, { cwd: folder });
const lines = () =>
  readFileSync(join(folder, "data", "ledger.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

beforeEach(() => {
  folder = tempDir("registry");
  write("svc.config.yaml", "data: data\nregistry: {manifests: reg/m, policies: reg/p}\n");
  write("tool.yaml", 'tool: crm.get\neffect: read\npermission: crm.read\nversion: "1.0"\n');
  write(
    "policy.yaml",
    "version: 1\nrules: [{id: no, match: {tool: crm.get}, action: deny, reason: no}]\ntests: [{name: t, input: {tool: crm.get}, expect: deny}]\n",
  );
});

describe("svc registry", () => {
  it("takes a manifest from draft to approved to deprecated, on the ledger under the name given", async () => {
    expect((await svc("registry", "list")).err).toContain("the registry is empty");
    const published = await svc("registry", "publish", "tool.yaml", "--as", "ann");
    expect(published.out).toContain(
      "published crm.get 1.0 as a draft; approve it with: svc registry approve crm.get",
    );
    expect((await svc("registry", "approve", "crm.get", "--version", "1.0", "--as", "bob")).out).toContain(
      "approved crm.get 1.0",
    );
    const listed = await svc("registry", "list");
    expect(listed.out).toMatch(/manifest +crm\.get +1\.0 +approved +published by ann +approved by bob/);
    expect((await svc("registry", "deprecate", "crm.get")).out).toContain("deprecated crm.get 1.0");
    expect(lines().map(({ event, actor, tool }) => [event, actor, tool])).toEqual([
      ["manifest_published", "ann", "crm.get"],
      ["manifest_approved", "bob", "crm.get"],
      ["manifest_deprecated", "cli", "crm.get"],
    ]);
  });

  it("publishes a policy whose tests pass, and puts it in force", async () => {
    const published = await svc("registry", "publish-policy", "policy.yaml", "--note", "stricter");
    expect(published.out).toContain("published policy version 1 as a draft (1 of its tests passed)");
    expect((await svc("registry", "activate", "1")).out).toMatch(
      /^policy version 1 is active \(sha256:[0-9a-f]{64}\)$/m,
    );
    const { policies } = JSON.parse((await svc("registry", "list", "--json")).out);
    expect(policies).toMatchObject([{ version: "1", status: "active", created_by: "cli", note: "stricter" }]);
    expect(lines()).toMatchObject([{ event: "policy_activated" }]);
  });

  it.each([
    [["approve", "nobody.knows"], /nobody\.knows/],
    [["approve", "crm.get"], /no draft|crm\.get/],
    [["publish", "missing.yaml"], /missing\.yaml/],
    [["activate", "7"], /7/],
    [["activate", "../x"], /policy version/],
  ])("%j is one line that says what is wrong, and exit 1", async (args, message) => {
    const { code, err, out } = await svc("registry", ...args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(message);
    expect(err).not.toMatch(/\n\s+at /);
  });

  it("reports that no folder is configured", async () => {
    write("svc.config.yaml", "data: data\n");
    const { code, err } = await svc("registry", "list");
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("no manifest registry folder is configured on this server"),
    ]);
  });
});
