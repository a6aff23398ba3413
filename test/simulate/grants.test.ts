/** Impact and speculation answer as the grants in force would; history's own grants are believed. */
import { describe, expect, it } from "vitest";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = "version: 1\nrules: [{id: creates, match: {tool: crm.create}, action: require_approval}]\n";
const grant = (now: number, max_uses: number) => ({
  match: { tool: "crm.create", actor: "agent" },
  rules: ["creates"],
  max_uses,
  expires_at: new Date(now + 3_600_000).toISOString(),
  reason: "a fair",
});

describe("grants in the sandbox", () => {
  it("count in impact and speculation, and nothing of them is used up", async () => {
    verifies("beyond.grant.sandbox");
    const s = await testServer({ policy: POLICY, config: "capture: {enabled: true}\n" });
    const impact = async (actor: string) =>
      (await s.call("auditor", "GET", `/v1/impact?tool=crm.create&args={}&actor=${actor}`)).body;
    expect(await impact("agent")).toMatchObject({ decision: "needs_approval" });
    const { id } = (await s.call("approver", "POST", "/v1/grants", grant(s.env.now(), 2))).body;
    expect(await impact("agent")).toMatchObject({ decision: "allow", by: [`grant ${id}`], approval: null });
    expect(await impact("agent2")).toMatchObject({ decision: "needs_approval" });

    const calls = [1, 2, 3].map((n) => ({ tool: "crm.create", args: { n } }));
    const plan = { plans: [{ name: "all", calls }], actor: "agent" };
    const { plans } = (await s.call("auditor", "POST", "/v1/speculate", plan)).body;
    expect(plans[0].approvals).toMatchObject([{ call: 2, tool: "crm.create" }]);
    expect((await s.call("auditor", "GET", "/v1/grants")).body.grants[0]).toMatchObject({ uses: 0 });

    await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.write"] });
    const ask = { tool: "crm.create", args: { n: 1 }, reason: "r" };
    expect((await s.call("agent", "POST", "/v1/runs/r/intents", ask)).body).toMatchObject({
      decision: "allow",
    });
    await s.call("approver", "DELETE", `/v1/grants/${id}`);
    const simulated = (await s.call("operator", "POST", "/v1/simulate", {})).body;
    expect(simulated.summary).toMatchObject({ calls: 1, unchanged: 1 });
    const replayed = (await s.call("operator", "POST", "/v1/runs/r/replay", { changes: [] })).body;
    expect(replayed.differences).toEqual([]);
  });

  it("preview is a 404 while capture is off", async () => {
    const s = await testServer({ policy: POLICY });
    const { match, rules } = grant(s.env.now(), 1);
    expect(await s.call("approver", "POST", "/v1/grants/preview", { match, rules })).toMatchObject({
      status: 404,
      body: { error: "capture is off" },
    });
  });
});
