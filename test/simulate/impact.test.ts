/** Impact preview: everything it tells about a call, for every kind of tool. */
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { previewImpact } from "../../src/operations/simulate/impact.ts";
import { verifies } from "../support/verifies.ts";
import { type Capturing, capturing, everythingOf } from "./support.ts";

const POLICY = `
version: 1
rules:
  - {id: big, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 50}], action: require_approval, reason: over 50, approval: {groups: [finance], quorum: 2}}
  - {id: legal, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 80}], action: require_approval, reason: over 80, approval: {groups: [legal]}}
  - {id: no-bots, match: {tool: mail.send, actor: bot}, action: deny, reason: bots send no mail}
content: {pii: warn}
risk: {}
`;

const preview = (s: Capturing, tool: string, args: JsonValue = {}, actor = "ann") =>
  previewImpact(s.app, { tool, args, actor });

describe("a preview", () => {
  it("tells the decision, the risk with its factors, the labels and the undo", async () => {
    verifies("ops.impact.decision", "ops.impact.risk", "ops.impact.labels", "ops.impact.outlook");
    verifies("ops.impact.prerequisites", "ops.impact.requires-assumed");
    const s = await capturing({ policy: POLICY, environment: "prod" });
    expect(await preview(s, "crm.create", { email: "x" })).toEqual({
      tool: "crm.create",
      actor: "ann",
      decision: "allow",
      hints: [],
      reasons: [],
      by: [],
      risk: { score: 65, factors: { effect: 25, blast_radius: 5, data_class: 20, environment: 15 } },
      owner: "sales",
      labels: {
        effect: "compensable",
        data_class: "pii",
        blast_radius: "single",
        lifecycle: "approved",
        version: "1.2.0",
      },
      requires: ["crm.open"],
      approval: null,
      rollback: {
        outlook: "can be undone",
        undo_tool: "crm.delete",
        kind: "inverse",
        residue: ["a welcome mail was sent"],
        verified: true,
        needs_approval: false,
        proof: "never proven",
      },
      warnings: [],
    });
  });

  it("tells who must approve, and how many", async () => {
    verifies("ops.impact.approvers");
    const s = await capturing({ policy: POLICY });
    const one = await preview(s, "pay.charge", { amount: 60 });
    expect(one).toMatchObject({
      decision: "needs_approval",
      reasons: ["over 50", "approval required: an approver must approve this call"],
      by: ["rule big"],
      approval: { groups: ["finance"], quorum: 2, needs: [{ groups: ["finance"], quorum: 2 }] },
      rollback: { undo_tool: "pay.refund", verified: false, needs_approval: true },
    });
    const two = await preview(s, "pay.charge", { amount: 90 });
    expect(two.approval!.needs).toEqual([
      { groups: ["finance"], quorum: 2 },
      { groups: ["legal"], quorum: 1 },
    ]);
  });

  it("depends on who asks", async () => {
    const s = await capturing({ policy: POLICY });
    expect((await preview(s, "mail.send", {}, "bot")).decision).toBe("block");
    expect((await preview(s, "mail.send", {}, "ann")).decision).toBe("allow");
  });

  it("warns of what cannot be undone, is not checked, or is not in force", async () => {
    verifies("ops.impact.warn-irreversible", "ops.impact.warn-lifecycle", "ops.impact.warn-unverified");
    const s = await capturing({ policy: POLICY });
    const warnings = async (tool: string, args: JsonValue = {}) => (await preview(s, tool, args)).warnings;
    expect(await warnings("mail.send")).toEqual([expect.stringContaining("irreversible effect")]);
    expect(await warnings("pay.charge")).toEqual([expect.stringContaining("unverified undo")]);
    expect(await warnings("old.tool")).toEqual([expect.stringContaining("deprecated manifest")]);
    expect(await warnings("new.tool")).toEqual([expect.stringContaining("draft manifest")]);
    expect(await warnings("crm.get", { m: "ann@example.com" })).toEqual([
      "content check (pii): email at $args.m",
    ]);
    expect((await preview(s, "new.tool")).decision).toBe("block");
    expect((await preview(s, "old.tool")).decision).toBe("allow");
    expect((await preview(s, "mail.send")).rollback.outlook).toBe("cannot be undone");
    expect((await preview(s, "crm.get")).rollback.outlook).toBe("nothing to undo");
  });

  it("of an unknown tool is a block with an unknown outlook", async () => {
    verifies("ops.impact.unknown-tool-block", "ops.impact.unknown-tool-outlook");
    verifies("ops.impact.unknown-tool-warning");
    const s = await capturing();
    expect(await preview(s, "no.such")).toMatchObject({
      decision: "block",
      reasons: ["no manifest is registered for this tool"],
      owner: null,
      labels: { effect: null, data_class: null },
      requires: [],
      rollback: { outlook: "unknown", undo_tool: null },
      warnings: [expect.stringMatching(/^unclassified tool/)],
    });
  });

  it("works with capture off, and changes nothing", async () => {
    verifies("ops.impact.capture-off");
    const s = await capturing({
      capture: "{}",
      policy: "version: 1\nlimits: [{id: one, max: 1, per: actor, window: 1h}]\n",
    });
    const before = await everythingOf(s.app.core.store);
    for (let n = 0; n < 3; n++) expect((await preview(s, "crm.get")).decision).toBe("allow");
    expect(await everythingOf(s.app.core.store)).toBe(before);
  });
});
