/**
 * Work on input that people send to be read, compiled, tested or compared runs concurrently with decisions, which
 * continue in the meantime.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Answer, type TestServer, testServer } from "../support/server.ts";

let s: TestServer;
beforeAll(async () => {
  s = await testServer({ config: "registry: {manifests: reg/manifests, policies: reg/policies}\n" });
  await s.call("agent", "POST", "/v1/runs", { run_id: "busy", permissions: ["crm.read"] });
});

/** A policy and a manifest of some size, and the version that the policy gets when it is published. */
interface Given {
  version: string;
  yaml: string;
  manifest: { tool: string };
}

const given = (version: string, rules: number): Given => ({
  version,
  yaml: `version: 1\nrules:\n${Array.from(
    { length: rules },
    (_, i) =>
      `  - id: r${i}\n    match: {tool: "t${i}.*"}\n    when: [{path: $args.amount, op: gt, value: ${i}}]\n    action: deny\n`,
  ).join("")}`,
  manifest: {
    tool: `of.${rules}`,
    ...{ effect: "compensable", permission: "p" },
    ...{ compensation: { tool: "undo", residue: Array.from({ length: 5 * rules }, (_, i) => `left ${i}`) } },
  },
});

const post = (key: string, path: string, body: unknown = {}) => s.call(key, "POST", path, body);

const ASKED: Readonly<Record<string, (given: Given) => Promise<Answer>>> = {
  "a policy is published": ({ yaml }) => post("operator", "/v1/registry/policy", { yaml }),
  "it is put in force": ({ version }) => post("admin", `/v1/registry/policy/${version}/activate`),
  "all is reloaded": () => post("admin", "/v1/reload"),
  "a manifest is published": ({ manifest }) => post("operator", "/v1/registry/manifests", { manifest }),
  "it is approved": ({ manifest }) => post("admin", `/v1/registry/manifests/${manifest.tool}/approve`),
  "a file of the registry was edited": ({ yaml, version }) => {
    writeFileSync(join(s.folder, `reg/policies/${version}.yaml`), `# edited\n${yaml}`);
    return s.call("operator", "GET", "/v1/registry");
  },
};

/** How many decisions were made before the answer came. */
async function decisionsBefore(asked: Promise<Answer>): Promise<number> {
  let answered = false;
  const ended = asked.finally(() => {
    answered = true;
  });
  let decisions = 0;
  for (; !answered; decisions++) {
    const call = { tool: "crm.get", args: { n: decisions }, reason: "r" };
    expect((await post("agent", "/v1/runs/busy/intents", call)).body.decision).toBe("allow");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const { status, text } = await ended;
  expect(status, text.slice(0, 300)).toBeLessThan(300);
  return decisions;
}

async function decisionsOfAll(given: Given): Promise<Record<string, number>> {
  const made: Record<string, number> = {};
  for (const [what, ask] of Object.entries(ASKED)) made[what] = await decisionsBefore(ask(given));
  return made;
}

describe("decisions continue", () => {
  it("while something is read, however large it is", { timeout: 300_000 }, async () => {
    // Files are written and looked up in either case. Only a large content takes its time.
    const small = await decisionsOfAll(given("1", 1));
    const large = await decisionsOfAll(given("2", 1_500));
    for (const what of Object.keys(ASKED))
      expect(large[what], `${what}: ${small[what]} decisions for a small one`).toBeGreaterThan(
        2 * small[what]! + 20,
      );
  });
});

it("rules that were read first do not come into force last", { timeout: 180_000 }, async () => {
  const own = await testServer();
  const file = join(own.folder, "policy.yaml");
  const reload = () => own.call("admin", "POST", "/v1/reload", {});
  writeFileSync(file, given("1", 1_500).yaml);
  const older = reload();
  // Enough time to open the file, and too little to read it.
  await new Promise((resolve) => setTimeout(resolve, 100));
  writeFileSync(file, given("1", 1).yaml);
  const newer = reload();
  expect((await Promise.all([older, newer])).map(({ status }) => status)).toEqual([200, 200]);
  expect((await own.call("auditor", "GET", "/v1/status")).body.policy.rules).toBe(1);
});

describe("a ring of prerequisites", () => {
  it("is refused where it would be closed, and leaves nothing behind", { timeout: 180_000 }, async () => {
    const entry = (tool: string, requires: string[]) => ({ tool, effect: "read", permission: "p", requires });
    const publish = (manifest: object) => post("operator", "/v1/registry/manifests", { manifest });
    expect((await publish(entry("ring.a", ["ring.b"]))).status).toBe(201);
    const refused = await publish(entry("ring.b", ["ring.a"]));
    expect([refused.status, refused.body.error]).toEqual([
      400,
      expect.stringMatching(/ring\.b: requires: the prerequisites form a cycle/),
    ]);
    const { manifests } = (await s.call("operator", "GET", "/v1/registry")).body;
    const tools = manifests.map(({ tool }: { tool: string }) => tool);
    expect([tools.includes("ring.a"), tools.includes("ring.b")]).toEqual([true, false]);
    expect((await post("admin", "/v1/reload")).status).toBe(200);
  });
});
