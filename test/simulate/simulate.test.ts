/** Simulation: groups, reasons, knock-on effects, notes, and what the sandbox believes and does not. */
import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { purgeCaptures } from "../../src/capture/captured-calls.ts";
import { approveRequest } from "../../src/operations/approvals/approvals.ts";
import { haltCalls } from "../../src/operations/halts.ts";
import { submitIntent } from "../../src/operations/runs/intents-and-outcomes.ts";
import { openRun } from "../../src/operations/runs/runs.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { principal } from "../support/engine.ts";
import { verifies } from "../support/verifies.ts";
import { type Capturing, capturing, everythingOf, NOON, simulated } from "./support.ts";

const rule = (id: string, tool: string, action: string, when = "") =>
  `  - {id: ${id}, match: {tool: ${tool}}, action: ${action}, reason: ${id} says so${when === "" ? "" : `, when: [${when}]`}}\n`;
const rules = (...list: string[]) => `version: 1\nrules:\n${list.join("")}`;
const over = (n: number) => `{path: $args.amount, op: gt, value: ${n}}`;

async function history(policy = "version: 1\n"): Promise<Capturing> {
  const s = await capturing({ policy });
  for (const run of ["a", "b"]) {
    await s.open(run);
    for (const amount of [10, 60, 90]) {
      const { decision, ...rest } = await s.ask(run, "pay.charge", { amount });
      if (decision !== "block") await s.done(run, (rest as { step: number }).step);
    }
  }
  await s.ask("a", "mail.send", { to: "ann" });
  return s;
}

describe("the groups", () => {
  it("sets every new decision against the old one", async () => {
    verifies("ops.simulation.compares-decision", "ops.simulation.newly-blocked");
    verifies("ops.simulation.newly-needs-approval", "ops.simulation.newly-allowed", "ops.simulation.summary");
    verifies("contract.policy.needs-approval-word", "ops.simulate.http-policy");
    const s = await history(rules(rule("no-mail", "mail.send", "deny")));
    const report = await simulated(
      s,
      rules(
        rule("big", "pay.charge", "require_approval", over(50)),
        rule("huge", "pay.charge", "deny", over(80)),
      ),
    );
    expect(report.summary).toEqual({
      calls: 7,
      runs: 2,
      unchanged: 2,
      newly_blocked: 2,
      newly_needs_approval: 2,
      newly_allowed: 1,
    });
    expect(report.newly_blocked.map(({ run_id, step }) => [run_id, step])).toEqual([
      ["a", 2],
      ["b", 2],
    ]);
    expect(report.newly_blocked[0]).toEqual({
      run_id: "a",
      step: 2,
      tool: "pay.charge",
      actor: "bot",
      captured_ms: NOON,
      old: { decision: "allow", reasons: [] },
      new: { decision: "block", reasons: ["big says so", "huge says so"], by: ["rule huge"], risk_score: 0 },
    });
    expect(report.newly_needs_approval[0]!.new).toEqual({
      decision: "needs_approval",
      reasons: ["big says so", "approval required: an approver must approve this call"],
      by: ["rule big"],
      risk_score: 0,
    });
    expect(report.newly_allowed).toMatchObject([
      { step: null, old: { decision: "block", reasons: ["no-mail says so"] }, new: { decision: "allow" } },
    ]);
    expect(report.changes).toEqual([
      {
        change: "newly_blocked",
        by: ["rule huge"],
        calls: 2,
        runs: 2,
        run_ids: ["a", "b"],
        tools: ["pay.charge"],
        reason: "big says so",
      },
      expect.objectContaining({ change: "newly_needs_approval", by: ["rule big"], calls: 2, runs: 2 }),
      expect.objectContaining({ change: "newly_allowed", by: ["no-mail says so"], calls: 1 }),
    ]);
  });

  it("counts from needs_approval to block as newly blocked, and back as newly needing approval", async () => {
    verifies("ops.simulation.approval-to-block");
    const asking = rules(rule("big", "pay.charge", "require_approval", over(50)));
    const denying = rules(rule("big", "pay.charge", "deny", over(50)));
    const strict = await simulated(await history(asking), denying);
    expect(strict.summary).toMatchObject({ newly_blocked: 4, newly_needs_approval: 0, unchanged: 3 });
    expect(strict.newly_blocked[0]!.old.decision).toBe("needs_approval");
    const loose = await simulated(await history(denying), asking);
    expect(loose.summary).toMatchObject({ newly_needs_approval: 4, newly_blocked: 0, unchanged: 3 });
    const free = await simulated(await history(denying), "version: 1");
    expect(free.summary).toMatchObject({ newly_allowed: 4, unchanged: 3 });
  });

  it("simulates the active policy when it is given none", async () => {
    verifies("ops.simulate.http-active");
    const s = await history();
    expect((await simulated(s)).summary).toMatchObject({ calls: 7, unchanged: 7 });
  });

  it("names what decided: limits, budgets, windows, content, risk and the engine's own stages", async () => {
    const s = await capturing();
    await s.open("r");
    for (let n = 0; n < 3; n++)
      await s.call("r", "mail.send", { n, amount: 3, text: "call +1 202 555 0143" });
    const causes = async (policy: string) =>
      (await simulated(s, `version: 1\n${policy}`)).newly_blocked.map((call) => call.new.by.join());
    expect(await causes("limits: [{id: few, max: 1, per: run, window: 1h}]")).toEqual([
      "limit few",
      "limit few",
    ]);
    expect(await causes("budgets: [{id: cap, path: $args.amount, max: 5, per: actor, window: 1h}]")).toEqual([
      "budget cap",
      "budget cap",
    ]);
    expect(await causes("windows: [{id: nights, hours: '22:00-23:00'}]")).toEqual(
      Array(3).fill("window nights"),
    );
    expect(await causes("freezes: [{id: june, from: 2026-06-01, to: 2026-07-01}]")).toEqual(
      Array(3).fill("freeze june"),
    );
    expect(await causes("content: {max_bytes: 5}")).toEqual(Array(3).fill("a content check"));
    expect(await causes("risk: {deny_at: 10}")).toEqual(Array(3).fill("the risk score"));
  });
});

it("keeps a report small for any policy", async () => {
  const s = await capturing();
  await s.open("r");
  for (let n = 0; n < 3; n++) await s.call("r", "crm.get", { n });
  const many = Array.from({ length: 500 }, (_, n) => rule(`r${n}`, "crm.get", "deny"));
  const { newly_blocked, changes } = await simulated(s, rules(...many));
  expect(newly_blocked[0]!.new.reasons).toHaveLength(21);
  expect(newly_blocked[0]!.new.reasons.at(-1)).toBe("and 480 more");
  expect(changes[0]!.by.at(-1)).toBe("and 480 more");
});

describe("what follows from a refusal", () => {
  it("a newly blocked prerequisite blocks what needs it, and an approval is taken as given", async () => {
    const s = await capturing();
    await s.open("r");
    await s.call("r", "crm.open", {});
    await s.call("r", "crm.create", { email: "ann@example.com" }, { id: 1 });
    const blocked = await simulated(s, rules(rule("no-session", "crm.open", "deny")));
    expect(blocked.newly_blocked.map((call) => [call.tool, call.new.by.join()])).toEqual([
      ["crm.open", "rule no-session"],
      ["crm.create", "prerequisite crm.open has not succeeded in this run"],
    ]);
    const asked = await simulated(s, rules(rule("ask", "crm.open", "require_approval")));
    expect(asked.summary).toMatchObject({ newly_needs_approval: 1, newly_blocked: 0, unchanged: 1 });
  });

  it("a newly blocked step fells what depends on it", async () => {
    const s = await capturing();
    await s.open("r");
    await s.call("r", "crm.get", {});
    await s.ask("r", "mail.send", {}, [0]);
    const report = await simulated(s, rules(rule("no-reads", "crm.get", "deny")));
    expect(report.newly_blocked.map((call) => call.new.reasons)).toEqual([
      ["no-reads says so"],
      ["step 0, which this call depends on, is not active"],
    ]);
  });

  it("limits count what the candidate lets through, at the times of the calls", async () => {
    const s = await capturing();
    await s.open("r");
    for (let n = 0; n < 8; n++) {
      s.env.setNow(NOON + n * 600_000);
      await s.call("r", "crm.get", { n });
    }
    const report = await simulated(s, "version: 1\nlimits: [{id: slow, max: 2, per: actor, window: 35m}]");
    expect(report.newly_blocked.map(({ step }) => step)).toEqual([2, 3, 6, 7]);
  });
});

describe("what history is believed", () => {
  it("prerequisites that nobody captured are taken to have run", async () => {
    const s = await capturing();
    await s.open("r");
    await s.call("r", "crm.open", {});
    await s.captured();
    await purgeCaptures(s.app.core.store, { run_id: "r" });
    await s.call("r", "crm.create", { email: "ann@example.com" }, { id: 1 });
    expect((await simulated(s)).summary).toMatchObject({ calls: 1, unchanged: 1 });
  });

  it("a logical call that was rolled back is free again", async () => {
    const s = await capturing();
    for (const run of ["a", "b"]) {
      await s.open(run);
      await s.call(run, "crm.open", {});
      await s.call(run, "crm.create", { email: "ann@example.com" }, { id: 1 });
      await executeRollback(s.app.core, run, { actor: "x", compensator: async () => null, reader: null });
    }
    expect((await simulated(s)).summary).toMatchObject({ calls: 4, unchanged: 4 });
  });

  it("redacted values do not make two logical calls one", async () => {
    const policy = `${rules(rule("vip", "crm.create", "deny", "{path: $args.vip, op: eq, value: true}"))}`;
    const s = await capturing({ policy });
    await s.open("r");
    await s.call("r", "crm.open", {});
    await s.call("r", "crm.create", { email: "ann@example.com", vip: false }, { id: 1 });
    await s.ask("r", "crm.create", { email: "bob@example.com", vip: true });
    await s.ask("r", "crm.create", { email: "ann@example.com", vip: false });
    const report = await simulated(s, "version: 1");
    expect(report.newly_allowed.map(({ old }) => old.reasons)).toEqual([["vip says so"]]);
    expect(report.summary.unchanged).toBe(3);
  });

  it("a call that an approval let through stays allowed while the rule still asks for one", async () => {
    const policy = rules(rule("big", "pay.charge", "require_approval", over(50)));
    const s = await capturing({ policy });
    await s.open("r");
    const asked = (await s.ask("r", "pay.charge", { amount: 80 })) as { reasons: string[] };
    const id = /request (apr_\S+)/.exec(asked.reasons.join())![1];
    await s.perform(approveRequest, { approval_id: id! }, principal("boss", "approver"));
    await s.call("r", "pay.charge", { amount: 80 }, { id: 1 });
    expect((await simulated(s)).summary).toMatchObject({ calls: 2, unchanged: 2 });
    const lifted = await simulated(
      s,
      "version: 1\nbudgets: [{id: cap, path: $args.amount, max: 100, per: run, window: 1d}]",
    );
    expect(lifted.summary).toMatchObject({ newly_allowed: 1, newly_blocked: 0, unchanged: 1 });
  });

  it("blocks by a halt, a missing prerequisite elsewhere or a content check can show as newly allowed", async () => {
    verifies("ops.simulate.other-reasons");
    const secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].join("");
    const s = await capturing({ policy: "version: 1\ncontent: {secrets: deny, pii: warn}\n" });
    await s.open("r");
    await s.ask("r", "crm.get", { note: secret });
    await s.perform(haltCalls, { reason: "stop" }, principal("root", "admin"));
    await s.ask("r", "crm.get", {});
    const report = await simulated(s);
    expect(report.newly_allowed.map(({ old }) => old.reasons[0])).toEqual([
      expect.stringContaining("content check (secrets)"),
      "kill switch: stop",
    ]);
    expect(report.notes).toEqual([
      "the content check (secrets) reads all arguments, redacted in 1 captured call: the decision may differ from the live one",
    ]);
  });
});

describe("the sandbox's limits", () => {
  it("leaves the real ledger, runs and everything else as they are", async () => {
    verifies("ops.sandbox.ledger-untouched", "ops.sandbox.runs-untouched");
    const s = await history();
    await s.captured();
    const before = await everythingOf(s.app.core.store);
    const captures = JSON.stringify(await s.app.core.store.list("captures", { limit: 100 }));
    await simulated(s, rules(rule("no", "'*'", "deny")));
    expect(await everythingOf(s.app.core.store)).toBe(before);
    expect(JSON.stringify(await s.app.core.store.list("captures", { limit: 100 }))).toBe(captures);
  });

  it("uses manifests as they are now, with every permission of them", async () => {
    verifies("ops.sandbox.loaded-now", "ops.sandbox.every-permission");
    const s = await capturing();
    await s.open("narrow");
    const run = (await s.app.core.store.get("runs", "narrow"))!;
    expect(run.scope.permissions).toContain("mail.send");
    await s.perform(openRun, { run_id: "none", permissions: [] });
    const decided = await s.perform(submitIntent, { run_id: "none", tool: "crm.get", args: {}, reason: "x" });
    expect(decided).toMatchObject({
      decision: "block",
      reasons: ["permission crm.read is not in the run's scope"],
    });
    await s.ask("narrow", "late.tool", {});
    expect((await simulated(s)).newly_allowed.map(({ run_id }) => run_id)).toEqual(["none"]);
    writeFileSync(`${s.folder}/manifests.yaml`, "- {tool: late.tool, effect: read, permission: p}\n");
    await s.app.reload();
    const later = await simulated(s);
    expect(later.newly_allowed.map(({ tool }) => tool)).toEqual(["late.tool"]);
  });

  it("sees the real clock in windows and freezes", async () => {
    verifies("ops.sandbox.real-clock");
    const policy =
      "version: 1\nwindows: [{id: day, hours: '09:00-17:00'}]\nfreezes: [{id: cold, from: 2026-06-16T10:00:00Z, to: 2026-06-16T11:00:00Z}]\n";
    const s = await capturing({ policy });
    await s.open("r");
    await s.call("r", "crm.get", { at: "noon" });
    s.env.setNow(NOON + 12 * 3_600_000);
    await s.ask("r", "crm.get", { at: "midnight" });
    expect((await simulated(s)).newly_blocked.map(({ new: now }) => now.by)).toEqual([["window day"]]);
    s.env.setNow(NOON + 23 * 3_600_000 - 1);
    expect((await simulated(s)).newly_blocked.map(({ new: now }) => now.by)).toEqual([["freeze cold"]]);
    s.env.setNow(NOON + 23 * 3_600_000);
    expect((await simulated(s)).summary).toMatchObject({ newly_blocked: 0, newly_allowed: 1 });
  });

  it("starts counters empty and counts only what it replays", async () => {
    verifies("ops.sandbox.empty-counters");
    const s = await capturing({
      policy: "version: 1\nlimits: [{id: few, max: 2, per: actor, window: 1h}]\n",
    });
    await s.open("r");
    for (let n = 0; n < 2; n++) await s.call("r", "crm.get", { n });
    await s.captured();
    await purgeCaptures(s.app.core.store, { run_id: "r" });
    await s.ask("r", "crm.get", { n: 2 });
    expect((await s.captured()).map(({ verdict }) => verdict)).toEqual(["block"]);
    expect((await simulated(s)).summary).toMatchObject({ calls: 1, newly_allowed: 1 });
  });

  it("uses only captured calls that have not expired", async () => {
    verifies("ops.simulate.captured-only", "ops.capture.expired-not-used");
    const s = await history();
    s.env.setNow(NOON + 7 * 86_400_000 - 1);
    expect((await simulated(s)).summary.calls).toBe(7);
    s.env.setNow(NOON + 7 * 86_400_000);
    expect((await simulated(s)).summary).toMatchObject({ calls: 0, runs: 0, unchanged: 0 });
  });
});

it("notes where a rule or a budget read inside a redacted value", async () => {
  verifies("ops.redaction.simulation-note");
  const s = await capturing();
  await s.open("r");
  await s.call("r", "crm.open", {});
  await s.call("r", "crm.create", { email: "ann@example.com", n: 1 }, { id: 1 });
  await s.call("r", "mail.send", {
    to: "bob@example.com",
    list: Array(300).fill(0),
    deep: { card: "4111 1111 1111 1111" },
  });
  const notes = async (path: string, tool = "'*'") =>
    (await simulated(s, rules(rule("looks", tool, "deny", `{path: ${path}, op: eq, value: zzz}`)))).notes;
  const told = (path: string, n: string) => [
    `rule looks reads ${path}, redacted in ${n}: the decision may differ from the live one`,
  ];
  expect(await notes("$args.email")).toEqual(told("$args.email", "1 captured call"));
  expect(await notes("$args.email.domain")).toEqual(told("$args.email.domain", "1 captured call"));
  expect(await notes("$args.to")).toEqual(told("$args.to", "1 captured call"));
  expect(await notes("$args.deep")).toEqual(told("$args.deep", "1 captured call"));
  expect(await notes("'$args.list[250]'")).toEqual(told("$args.list[250]", "1 captured call"));
  expect(await notes("$args.n")).toEqual([]);
  expect(await notes("$args.email", "mail.*")).toEqual([]);
  const budget =
    "version: 1\nbudgets: [{id: b, path: $args.deep.card, max: 1, per: run, window: 1h, match: {tool: mail.send}}]";
  expect((await simulated(s, budget)).notes[0]).toContain("budget b reads $args.deep.card");
});
