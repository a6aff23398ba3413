import { describe, expect, it } from "vitest";
import { principal, testEngine } from "../../test/support/engine.ts";
import { verifies } from "../../test/support/verifies.ts";
import { breakGlassUnit, decideUnit, expireOrEscalateUnit } from "./approvals/decide-request.ts";
import { delegateUnit, revokeUnit } from "./approvals/delegations.ts";
import { preApproveUnit } from "./approvals/pre-approve.ts";
import { resolveUnit } from "./decide/outcome.ts";
import { haltUnit, resumeUnit } from "./halts/halts.ts";

const MANIFESTS = `
- {tool: crm.open, effect: idempotent, permission: crm.write}
- tool: crm.create
  version: "2"
  effect: compensable
  permission: crm.write
  requires: [crm.open]
  idempotency: $args.email
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse}
- {tool: mail.send, effect: irreversible, permission: mail.send, risk: {data_class: pii}}
- {tool: old.read, effect: read, permission: crm.read, lifecycle: deprecated}
- {tool: new.read, effect: read, permission: crm.read, lifecycle: draft}
`;
const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: "mail.*"}, when: [{path: $args.to, op: ends_with, value: .org}], action: require_approval, reason: outside mail needs a person}
  - {id: never, match: {tool: "mail.*"}, when: [{path: $args.to, op: eq, value: boss@x.org}], action: deny, reason: not the boss}
limits:
  - {id: two, match: {tool: crm.open}, max: 2, per: run, window: 1h, action: deny}
`;
const bot = principal("bot");
const ann = principal("ann", "approver");
const permissions = ["crm.write", "crm.read", "mail.send"];
const engine = () => testEngine({ manifests: MANIFESTS, policy: POLICY });

describe("an intent", () => {
  it("is allowed, journaled and finished", async () => {
    verifies(
      "core.purpose.decides-by-manifest",
      "core.intent.answer-allow",
      "core.step-state.intended",
      "core.step-state.intended-record",
      "core.event.intended",
      "core.route.outcome-200",
      "contract.event.exact-flows",
      "core.purpose.every-decision-on-ledger",
      "core.purpose.every-outcome-on-ledger",
    );
    const e = engine();
    const run = await e.open(bot, { run_id: "r", permissions });
    expect(await e.intent(bot, "r", "crm.open", {})).toEqual({ decision: "allow", step: 0 });
    expect(await e.outcome(bot, "r", 0)).toEqual({ step: 0, status: "succeeded" });
    expect(await e.intent(bot, "r", "crm.create", { email: "a@x" })).toEqual({ decision: "allow", step: 1 });
    await expect(e.outcome(bot, "r", 0)).rejects.toMatchObject({ code: "conflict" });
    const trail = await e.trail("r");
    expect(trail.map((record) => record.event)).toEqual(["intended", "succeeded", "intended"]);
    expect(trail.map((record) => record.run_seq)).toEqual([0, 1, 2]);
    expect(new Set(trail.map((record) => record.scope_seal))).toEqual(new Set([run.scope.seal]));
    expect(trail[2]).toMatchObject({
      tool: "crm.create",
      actor: "bot",
      effect: "compensable",
      manifest_version: "2",
      reason: "because",
    });
  });

  it("is blocked with every reason, in pipeline order", async () => {
    verifies(
      "contract.combine.all-reasons",
      "core.reason.scope",
      "core.manifest.permission-in-scope",
      "core.purpose.decides-by-scope",
      "core.intent.answer-block",
      "core.intent.block-has-no-step",
      "core.event.blocked",
      "core.step-state.blocked-record",
    );
    const e = engine();
    await e.open(bot, { run_id: "r", permissions: ["crm.read"] });
    await e.store.transact(haltUnit(e.core, "root", { reason: "stop", tool: "crm.*" }));
    const decision = await e.intent(bot, "r", "crm.create", { email: "a@x" });
    expect(decision).toEqual({
      decision: "block",
      reasons: [
        "permission crm.write is not in the run's scope",
        "kill switch: stop",
        "prerequisite crm.open has not succeeded in this run",
      ],
    });
    const [, blocked] = await e.trail();
    expect(blocked).toMatchObject({
      event: "blocked",
      detail: (decision as { reasons: string[] }).reasons.join("; "),
    });
    expect(blocked).not.toHaveProperty("step");
  });

  it("knows tools without a manifest, drafts and deprecated ones, by mode", async () => {
    verifies(
      "contract.readings.unmanifested-enforce",
      "contract.readings.unmanifested-advise",
      "contract.readings.unmanifested-observe",
      "core.reason.no-manifest",
      "contract.manifest.draft-not-registered",
      "core.purpose.three-answers",
    );
    const e = engine();
    for (const mode of ["enforce", "observe", "advise"] as const)
      await e.open(bot, { run_id: mode, permissions, mode });
    const unknown = { reasons: ["no manifest is registered for this tool"] };
    expect(await e.intent(bot, "enforce", "x.y", {})).toMatchObject({ decision: "block", ...unknown });
    expect(await e.intent(bot, "advise", "x.y", {})).toMatchObject({ decision: "block", ...unknown });
    expect(await e.intent(bot, "observe", "x.y", {})).toEqual({
      decision: "would_block",
      step: 0,
      ...unknown,
    });
    expect((await e.trail("observe")).map((record) => record.event)).toEqual(["would_block", "intended"]);
    expect(await e.intent(bot, "enforce", "new.read", {})).toMatchObject({ decision: "block" });
    expect(await e.intent(bot, "observe", "new.read", {})).toMatchObject({ decision: "allow" });
    expect(await e.intent(bot, "enforce", "old.read", {})).toMatchObject({ decision: "allow" });
    expect(await e.intent(bot, "enforce", "crm.open ", {})).toMatchObject({ decision: "block", ...unknown });
  });

  it("is stopped by a halt in every mode, and by the kill-switch file", async () => {
    const e = engine();
    await e.open(bot, { run_id: "o", permissions, mode: "observe" });
    const { halt } = await e.store.transact(
      haltUnit(e.core, "root", { reason: "audit", actor: "b*", environment: "prod" }),
    );
    expect(await e.intent(bot, "o", "crm.open", {})).toMatchObject({ decision: "allow" });
    await e.store.transact(haltUnit(e.core, "root", { reason: "fire" }));
    expect(await e.intent(bot, "o", "crm.open", {})).toEqual({
      decision: "block",
      reasons: ["kill switch: fire"],
    });
    const { lifted } = await e.store.transact(resumeUnit(e.core, "root", null));
    expect(lifted).toHaveLength(2);
    expect(lifted).toContain(halt.id);
    e.kill.reason = "file";
    expect(await e.intent(bot, "o", "crm.open", {})).toEqual({
      decision: "block",
      reasons: ["kill switch: file"],
    });
    expect((await e.trail()).map((record) => record.event)).toContain("resumed");
  });

  it("is refused while any active step has it, also once repeats that observe mode let pass have failed", async () => {
    verifies("core.manifest.idempotency", "core.manifest.idempotency-frees");
    const e = testEngine({
      manifests: "- {tool: crm.add, effect: idempotent, permission: crm.write, idempotency: $args.email}",
    });
    await e.open(bot, { run_id: "strict", permissions });
    await e.open(bot, { run_id: "watch", permissions, mode: "observe" });
    const ask = (run_id: string) => e.intent(bot, run_id, "crm.add", { email: "a@x" });
    expect(await ask("strict")).toMatchObject({ decision: "allow" });
    expect(await ask("watch")).toMatchObject({ decision: "would_block", step: 0 });
    expect(await ask("watch")).toMatchObject({ decision: "would_block", step: 1 });
    await e.outcome(bot, "watch", 0, { status: "failed" });
    await e.outcome(bot, "watch", 1, { status: "failed" });
    expect(await ask("strict")).toMatchObject({ decision: "block" });
    await e.outcome(bot, "strict", 0, { status: "failed" });
    expect(await ask("strict")).toMatchObject({ decision: "allow" });
  });

  it("is refused while the same logical call is active, across runs, and free again after it failed", async () => {
    verifies("core.manifest.idempotency", "core.manifest.idempotency-frees");
    const e = engine();
    await e.open(bot, { run_id: "a", permissions });
    await e.open(bot, { run_id: "b", permissions });
    for (const run of ["a", "b"]) {
      await e.intent(bot, run, "crm.open", {});
      await e.outcome(bot, run, 0);
    }
    expect(await e.intent(bot, "a", "crm.create", { email: "a@x" })).toMatchObject({ decision: "allow" });
    const again = {
      decision: "block",
      reasons: [
        "idempotency: the same logical call is already active as a step of another run (repeat it with other values, or after that step has failed or is undone)",
      ],
    };
    expect(await e.intent(bot, "b", "crm.create", { email: "a@x" })).toEqual(again);
    expect(await e.intent(bot, "b", "crm.create", { email: "b@x" })).toMatchObject({ decision: "allow" });
    await e.outcome(bot, "a", 1, { status: "failed", error: "no" });
    expect(await e.intent(bot, "b", "crm.create", { email: "a@x" })).toMatchObject({ decision: "allow" });
  });

  it("may depend only on earlier steps that did not fall", async () => {
    verifies("contract.readings.depends-on-400");
    const e = engine();
    await e.open(bot, { run_id: "r", permissions });
    await e.intent(bot, "r", "old.read", {});
    await e.outcome(bot, "r", 0, { status: "failed" });
    await expect(e.intent(bot, "r", "old.read", {}, { depends_on: [1] })).rejects.toMatchObject({
      code: "invalid",
    });
    expect(await e.intent(bot, "r", "old.read", {}, { depends_on: [0] })).toMatchObject({
      reasons: ["step 0, which this call depends on, is not active"],
    });
  });

  it("counts limits only for calls that go ahead", async () => {
    verifies("core.purpose.decides-by-policy");
    const e = engine();
    await e.open(bot, { run_id: "r", permissions });
    for (const wanted of ["allow", "allow", "block"]) {
      expect(await e.intent(bot, "r", "crm.open", {})).toMatchObject({ decision: wanted });
    }
    await e.env.advance(3_700_000);
    expect(await e.intent(bot, "r", "crm.open", {})).toMatchObject({ decision: "allow" });
  });

  it("is refused when the stored scope was edited", async () => {
    const e = engine();
    const run = await e.open(bot, { run_id: "r", permissions: [] });
    await e.store.transact({
      run: (tx) => tx.put("runs", "r", { ...run, scope: { ...run.scope, permissions } }),
    });
    expect(await e.intent(bot, "r", "crm.open", {})).toMatchObject({
      decision: "block",
      reasons: [expect.stringMatching(/^scope seal mismatch/)],
    });
  });

  it("never lets another principal in, or discloses that the run exists", async () => {
    verifies("core.purpose.intent-needs-run");
    const e = engine();
    await e.open(bot, { run_id: "r", permissions });
    const stranger = e.intent(principal("eve"), "r", "crm.open", {});
    await expect(stranger).rejects.toMatchObject({ code: "not_found", message: "unknown run r" });
    await expect(e.intent(bot, "q", "crm.open", {})).rejects.toMatchObject({ message: "unknown run q" });
  });
});

describe("an outcome", () => {
  it("takes echoed argument values out of errors", async () => {
    const e = engine();
    await e.open(bot, { run_id: "r", permissions });
    await e.intent(bot, "r", "mail.send", { to: "canary-1@x.de", body: { n: 123456 } });
    await e.outcome(bot, "r", 0, {
      status: "failed",
      error: 'cannot send to "canary-1@x.de" 123456',
      result: { id: "canary-2" },
    });
    const text = JSON.stringify(await e.trail());
    expect(text).not.toContain("canary");
    expect(text).not.toContain("123456");
    expect(text).toContain("cannot send to");
  });

  it("can be resolved by an operator while unknown, and only then", async () => {
    const e = engine();
    await e.open(bot, { run_id: "r", permissions });
    await e.intent(bot, "r", "crm.open", {});
    await e.outcome(bot, "r", 0, { status: "uncertain", error: "timeout" });
    const unit = resolveUnit(e.core, "olga", "r", 0, { status: "succeeded", note: "seen it" });
    await e.store.transact(unit);
    await expect(e.store.transact(unit)).rejects.toMatchObject({ code: "conflict" });
    expect((await e.trail("r")).at(-1)).toMatchObject({
      event: "succeeded",
      actor: "olga",
      detail: "resolved by olga: seen it",
    });
  });
});

describe("an approval", () => {
  const ask = async (e: ReturnType<typeof engine>, to = "a@x.org") => e.intent(bot, "r", "mail.send", { to });
  const requested = (decision: unknown) => /apr_[0-9a-f-]{36}/.exec(JSON.stringify(decision))![0];

  async function pending() {
    const e = engine();
    await e.open(bot, { run_id: "r", permissions });
    return { e, id: requested(await ask(e)) };
  }
  const decideAs = (
    e: ReturnType<typeof engine>,
    who: typeof ann,
    id: string,
    decision: "approve" | "deny",
  ) => e.store.transact(decideUnit(e.core, who, id, { decision, note: "ok" }, []));

  it("is asked for once, used once, and only for the same arguments", async () => {
    verifies(
      "contract.approval.same-request",
      "contract.approval.covers-one",
      "core.approval-state.pending",
      "core.approval-state.intent-blocked",
      "core.approval-state.approve-records",
      "core.approval-state.approve-ledger",
      "core.approval-state.consumed",
      "core.approval-state.consumed-ledger",
      "core.approval-state.used-once",
      "core.approval-state.other-arguments",
      "core.event.approved-approver",
      "core.event.approved-engine",
      "contract.event.request-is-blocked-record",
      "core.route.intents-approval-reason",
      "core.purpose.decides-by-approvals",
      "core.reason.policy-rule",
    );
    const { e, id } = await pending();
    const again = await ask(e);
    expect(again).toEqual({
      decision: "block",
      reasons: [
        "outside mail needs a person",
        `approval required: request ${id} is pending an operator decision; retry after it is approved`,
      ],
    });
    const { approval } = await decideAs(e, ann, id, "approve");
    expect(approval).toMatchObject({ status: "approved", decided_by: "ann", note: "ok", arg_names: ["to"] });
    await expect(decideAs(e, ann, id, "deny")).rejects.toMatchObject({ code: "conflict" });
    expect(requested(await ask(e, "b@x.org"))).not.toBe(id);
    expect(await ask(e)).toEqual({ decision: "allow", step: 0 });
    expect(requested(await ask(e))).not.toBe(id);
    const events = (await e.trail("r")).map((record) => `${record.event} ${record.actor}`);
    expect(events).toEqual([
      "blocked bot",
      "blocked bot",
      "approved ann",
      "blocked bot",
      "approved engine",
      "intended bot",
      "blocked bot",
    ]);
  });

  it("does not help a call that is denied anyway, and troubles nobody with it", async () => {
    const { e } = await pending();
    const decision = await ask(e, "boss@x.org");
    expect(decision).toEqual({ decision: "block", reasons: ["outside mail needs a person", "not the boss"] });
    expect(await e.store.count("approvals")).toBe(1);
  });

  it("is not enough when the policy became stricter since", async () => {
    verifies("contract.approval.re-evaluated");
    const { e, id } = await pending();
    await decideAs(e, ann, id, "approve");
    e.usePolicy(
      POLICY.replace("reason: outside mail needs a person}", "reason: two people, approval: {quorum: 2}}"),
    );
    expect(await ask(e)).toMatchObject({ decision: "block" });
    e.usePolicy(POLICY.replace("action: require_approval", "action: deny"));
    expect(await ask(e)).toMatchObject({ decision: "block", reasons: ["outside mail needs a person"] });
  });

  it("expires, once approved too, and then a new one is needed", async () => {
    verifies(
      "contract.readings.approved-expires",
      "contract.event.approval-expired",
      "contract.approval.ttl-default",
    );
    const { e, id } = await pending();
    await decideAs(e, ann, id, "approve");
    await e.env.advance(25 * 3_600_000);
    expect(requested(await ask(e))).not.toBe(id);
    expect(await e.store.get("approvals", id)).toMatchObject({ status: "expired" });
    expect((await e.trail("r")).map((record) => record.event).slice(-2)).toEqual([
      "approval_expired",
      "blocked",
    ]);
    e.env.setNow(e.env.now() - 30 * 3_600_000);
    expect(await e.store.get("approvals", id)).toMatchObject({ status: "expired" });
  });

  it("denied, opens a new request for the same call", async () => {
    verifies("contract.readings.denied-new-request", "contract.event.denied");
    const { e, id } = await pending();
    await decideAs(e, ann, id, "deny");
    expect(requested(await ask(e))).not.toBe(id);
    expect((await e.trail("r"))[1]).toMatchObject({ event: "denied", actor: "ann" });
  });

  it("needs its quorum of different people from the right groups", async () => {
    verifies("contract.policy.approval-groups", "contract.policy.approval-quorum");
    const e = engine();
    e.usePolicy(
      POLICY.replace(
        "reason: outside mail needs a person}",
        "reason: two, approval: {quorum: 2, groups: [fin]}}",
      ),
    );
    await e.open(bot, { run_id: "r", permissions });
    const id = requested(await ask(e));
    await expect(decideAs(e, ann, id, "approve")).rejects.toMatchObject({ code: "forbidden" });
    const fin = (name: string) => ({ ...principal(name, "approver"), groups: ["fin"] });
    expect((await decideAs(e, fin("f1"), id, "approve")).approval.status).toBe("pending");
    await expect(decideAs(e, fin("f1"), id, "approve")).rejects.toMatchObject({ code: "conflict" });
    expect((await decideAs(e, fin("f2"), id, "approve")).approval.status).toBe("approved");
    expect(await ask(e)).toMatchObject({ decision: "allow" });
  });

  it("may not be decided by the one who asked, under four_eyes", async () => {
    verifies("contract.approval.four-eyes");
    const e = engine();
    e.usePolicy(`${POLICY}\napprovals: {four_eyes: true}`);
    await e.open(bot, { run_id: "r", permissions });
    const id = requested(await ask(e));
    const both = { ...bot, roles: ["agent", "approver"] as const };
    await expect(decideAs(e, both as never, id, "approve")).rejects.toThrow(
      "you cannot decide your own request",
    );
  });

  it("is not decided by authority that was revoked while it was being used", async () => {
    const { e, id } = await pending();
    const lent = await e.store.transact(
      delegateUnit(e.core, ann, { to: "dep", tools: "*", reason: "away", expires_ms: e.env.now() + 60_000 }),
    );
    await e.store.transact(revokeUnit(e.core, ann, lent.delegation.id));
    // As it was read before: the unit itself has to look again.
    const by = principal("dep", "auditor");
    const core = { ...e.core, today: () => ann };
    const vote = decideUnit(core, by, id, { decision: "approve", note: null }, [lent.delegation]);
    await expect(e.store.transact(vote)).rejects.toMatchObject({ code: "forbidden" });
  });

  it("can be forced by an admin, given ahead, and escalates in time", async () => {
    verifies(
      "contract.http.break-glass-ledger",
      "contract.http.pre-approve-ledger",
      "contract.policy.approval-escalation",
    );
    const { e, id } = await pending();
    await e.store.transact(
      breakGlassUnit(e.core, principal("root", "admin"), id, { reason: "site is down" }),
    );
    expect(await ask(e)).toMatchObject({ decision: "allow" });
    expect((await e.trail("r")).map((record) => record.detail)).toContain("break-glass: site is down");

    await e.store.transact(
      preApproveUnit(e.core, ann, "r", {
        tool: "mail.send",
        args: { to: "c@x.org" },
        note: "fine",
        ttl_ms: null,
      }),
    );
    expect(await ask(e, "c@x.org")).toMatchObject({ decision: "allow" });
    expect((await e.trail("r")).map((record) => record.detail)).toContain("pre-approved: fine");

    e.usePolicy(
      POLICY.replace(
        "needs a person}",
        "needs a person, approval: {groups: [ops], escalate_after: 30m, escalate_to: [leads]}}",
      ),
    );
    const slow = requested(await ask(e, "d@x.org"));
    expect(await e.store.transact(expireOrEscalateUnit(e.core, slow))).toBeNull();
    await e.env.advance(31 * 60_000);
    await e.store.transact(expireOrEscalateUnit(e.core, slow));
    expect(await e.store.get("approvals", slow)).toMatchObject({
      status: "escalated",
      approvers: { groups: ["ops", "leads"] },
    });
  });

  it("has a cap per run", async () => {
    verifies("contract.policy.max-open-per-run");
    const e = engine();
    e.usePolicy(`${POLICY}\napprovals: {max_open_per_run: 2}`);
    await e.open(bot, { run_id: "r", permissions });
    await ask(e, "1@x.org");
    await ask(e, "2@x.org");
    expect(JSON.stringify(await ask(e, "3@x.org"))).toContain("already has 2 open requests");
    expect(await e.store.count("approvals")).toBe(2);
  });
});
