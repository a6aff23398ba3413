/** Drills through a gateway's upstream, over HTTP: what they do, what they prove, and where they may run. */
import { beforeAll, describe, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import {
  call,
  FAKE_MANIFESTS,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  until,
} from "./support/gateway.ts";

/** `counted` is called for its undo here, and leaves the created object alone. */
const MANIFESTS = FAKE_MANIFESTS.replace(
  "- {tool: delete,",
  `  drill: {args: {n: 7}, expect: {id: 1}}
- tool: mail
  effect: irreversible
  permission: fake.write
- {tool: delete,`,
);
const here = (manifests: string, environments = ["staging"]) =>
  testGateway({
    upstreams: [fakeUpstream()],
    manifests,
    policy: "version: 1\nundo: {max_age: 30d, unproven: require_approval}\n",
    config: { environment: "staging", drills: { environments } },
  });

let g: GatewayTest;
beforeAll(async () => {
  g = await here(MANIFESTS);
});

async function ask(on: GatewayTest, key: string, method: string, path: string, body?: unknown) {
  const answer = await fetch(`${on.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
  return { status: answer.status, body: (await answer.json()) as any };
}
async function drilled(on: GatewayTest, body: object = {}) {
  const started = await ask(on, "operator", "POST", "/v1/drills", body);
  expect([started.status, started.body.error]).toEqual([202, undefined]);
  const look = async () => (await ask(on, "auditor", "GET", "/v1/drills")).body.drills;
  await until(async () => (await look()).length > 0, "the drill to end");
  return (await look())[0];
}

describe("a drill", () => {
  it("proves an undo through the upstream, and is said everywhere", async () => {
    verifies(
      "beyond.drill.pipeline",
      "beyond.drill.expect",
      "beyond.drill.routes",
      "beyond.drill.record",
      "beyond.drill.words",
      "beyond.drill.policy",
    );
    const agent = await g.connect("agent", { headers: { "svc-run-id": "asked" } });
    const waits = await call(agent, "create", { n: 1 });
    expect(waits.content[0].text).toContain("the undo of create does not count: it was never proven");
    const impact = async () => (await ask(g, "auditor", "GET", "/v1/impact?tool=create")).body;
    expect(await impact()).toMatchObject({
      decision: "needs_approval",
      rollback: { proof: "never proven" },
    });
    for (const [body, says] of [
      [{ tools: ["mail"] }, "mail is irreversible: there is no undo to test"],
      [{ tools: ["echo"] }, "echo has no undo to test"],
      [{ tools: ["none"] }, "no manifest is registered for none"],
    ] as const)
      expect(await ask(g, "operator", "POST", "/v1/drills", body)).toMatchObject({
        status: 400,
        body: { error: `tools: ${says}` },
      });
    expect((await ask(g, "operator", "POST", "/v1/drills", { upstream: "none" })).status).toBe(404);
    expect((await ask(g, "approver", "POST", "/v1/drills", {})).status).toBe(403);

    const drill = await drilled(g, { upstream: "fake" });
    expect(drill).toMatchObject({ tool: "create", passed: true, problem: null, by: "operator" });
    expect(drill.manifest_hash).toMatch(/^(sha256:)?[0-9a-f]{64}$/);
    expect(await g.events(drill.run_id)).toEqual([
      "intended",
      "succeeded",
      "compensating",
      "verified",
      "compensated",
      "drill_passed",
    ]);
    const words = `proven ${new Date(drill.at_ms).toISOString()}`;
    expect(await impact()).toMatchObject({ decision: "allow", rollback: { proof: words } });
    const other = await g.connect("agent", { headers: { "svc-run-id": "allowed" } });
    await call(other, "create", { n: 1 });
    const plan = (await ask(g, "auditor", "GET", "/v1/runs/allowed/plan")).body;
    expect(plan.actions).toMatchObject([{ kind: "compensate", proof: words }]);
  });

  it("fails where the undo lies, the result differs, or the read-back proves nothing", async () => {
    verifies("beyond.drill.liars", "beyond.drill.expect", "beyond.drill.effect", "beyond.drill.words");
    for (const [from, to, problem] of [
      ["compensation: {tool: delete,", "compensation: {tool: counted,", "the undo failed: "],
      ["expect: {id: 1}", "expect: {id: 8}", "the result is not as expected: "],
      ["expect: {exists: false}", "expect: {}", "the read-back matches before the undo: "],
    ] as const) {
      const liar = await here(MANIFESTS.replace(from, to));
      const drill = await drilled(liar);
      expect(drill).toMatchObject({ passed: false, problem: expect.stringContaining(problem) });
      expect((await liar.events(drill.run_id)).at(-1)).toBe("drill_failed");
      const { body } = await ask(liar, "auditor", "GET", "/v1/impact?tool=create");
      expect(body.rollback.proof).toBe("failing");
      expect(body.reasons).toContain("the undo of create does not count: its last drill failed");
      await liar.running.stop();
    }
  });

  it("runs nowhere else", async () => {
    verifies("beyond.drill.environments");
    const elsewhere = await here(MANIFESTS, ["test"]);
    expect(await ask(elsewhere, "admin", "POST", "/v1/drills", {})).toMatchObject({
      status: 403,
      body: {
        error: "drills run only in the environments listed under drills.environments; this one is staging",
      },
    });
    expect((await ask(elsewhere, "auditor", "GET", "/v1/drills")).body).toEqual({ drills: [] });
  });
});
