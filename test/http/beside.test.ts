/**
 * What people send to be read, compiled, tested or compared is worked on beside the decisions: they go on while it
 * lasts.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Answer, type TestServer, testServer } from "../support/server.ts";

/** Within every limit, and enough to be noticed. */
const LARGE_POLICY = `version: 1\nrules:\n${Array.from(
  { length: 600 },
  (_, i) =>
    `  - id: r${i}\n    match: {tool: "crm.t${i}.*"}\n    when: [{path: $args.amount, op: gt, value: ${i}}]\n    action: deny\n    reason: no ${i}\n`,
).join("")}`;
const LARGE_MANIFEST = {
  tool: "large.tool",
  effect: "compensable",
  permission: "p",
  compensation: { tool: "large.undo", residue: Array.from({ length: 3_000 }, (_, i) => `left ${i}`) },
};

let s: TestServer;
beforeAll(async () => {
  s = await testServer({ config: "registry: {manifests: reg/manifests, policies: reg/policies}\n" });
  await s.call("agent", "POST", "/v1/runs", { run_id: "busy", permissions: ["crm.read"] });
});

/** How many decisions were made before the answer came. */
async function decisionsBefore(answer: Promise<Answer>): Promise<{ decisions: number; answer: Answer }> {
  let answered = false;
  const ended = answer.finally(() => {
    answered = true;
  });
  let decisions = 0;
  while (!answered) {
    const call = { tool: "crm.get", args: { n: decisions }, reason: "r" };
    expect((await s.call("agent", "POST", "/v1/runs/busy/intents", call)).body.decision).toBe("allow");
    await new Promise((resolve) => setTimeout(resolve, 1));
    decisions++;
  }
  return { decisions, answer: await ended };
}

describe.sequential("decisions go on while", () => {
  it.each([
    ["a policy is published", "operator", "/v1/registry/policy", { yaml: LARGE_POLICY }, 201],
    ["it is activated", "admin", "/v1/registry/policy/1/activate", {}, 200],
    ["all is reloaded", "admin", "/v1/reload", {}, 200],
    ["a manifest is published", "operator", "/v1/registry/manifests", { manifest: LARGE_MANIFEST }, 201],
    ["it is approved", "admin", "/v1/registry/manifests/large.tool/approve", {}, 200],
  ] as const)(
    "%s",
    async (_what, key, path, body, status) => {
      const { decisions, answer } = await decisionsBefore(s.call(key, "POST", path, body));
      expect([answer.status, answer.text.slice(0, 300)]).toEqual([status, expect.anything()]);
      expect(decisions).toBeGreaterThan(3);
    },
    180_000,
  );

  it("a file that changed is read again", async () => {
    writeFileSync(join(s.folder, "reg/policies/2.yaml"), LARGE_POLICY.replace("no 0", "never"));
    const listed = s.call("operator", "GET", "/v1/registry");
    const { decisions, answer } = await decisionsBefore(listed);
    expect(answer.body.policies.map(({ version }: { version: string }) => version)).toEqual(["1", "2"]);
    expect(decisions).toBeGreaterThan(3);
  }, 180_000);
});

describe("a ring of prerequisites", () => {
  it("is refused where it would be closed, and leaves nothing behind", async () => {
    const entry = (tool: string, requires: string[]) => ({ tool, effect: "read", permission: "p", requires });
    const publish = (manifest: object) => s.call("operator", "POST", "/v1/registry/manifests", { manifest });
    expect((await publish(entry("ring.a", ["ring.b"]))).status).toBe(201);
    const refused = await publish(entry("ring.b", ["ring.a"]));
    expect([refused.status, refused.body.error]).toEqual([
      400,
      expect.stringMatching(/ring\.b.*requires: .*ring/),
    ]);
    const { manifests } = (await s.call("operator", "GET", "/v1/registry")).body;
    expect(manifests.map(({ tool }: { tool: string }) => tool)).toEqual(["large.tool", "ring.a"]);
    expect((await s.call("admin", "POST", "/v1/reload", {})).status).toBe(200);
  }, 180_000);
});
