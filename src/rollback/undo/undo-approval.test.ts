import { describe, expect, it } from "vitest";
import { rollbackBench } from "../../../test/sim/rollback-fixture.ts";
import { principal } from "../../../test/support/engine.ts";
import { verifies } from "../../../test/support/verifies.ts";
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { decideUnit } from "../../govern/approvals/decide-request.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { beginCompensation } from "../backend/remote-worker.ts";

const ann = principal("ann", "approver");

async function bench() {
  const b = rollbackBench();
  await b.openRun();
  const requests = async (): Promise<ApprovalDoc[]> =>
    (await b.store.list("approvals", { owner: "r1", limit: 100 })).map(({ doc }) => doc);
  return {
    ...b,
    requests,
    async decide(decision: "approve" | "deny", id?: string) {
      const open = id ?? (await requests()).find(({ status }) => status === "pending")!.id;
      await b.store.transact(decideUnit(b.core, ann, open, { decision, note: null }, []));
      return open;
    },
  };
}

describe("a compensation that needs approval", () => {
  it(`waits: its begin opens one request, for any number of callers ${verifies("core.compensation-approval.waits", "core.report.awaiting-approval", "contract.readings.compensation-opens-request", "contract.http.compensation-approval-409", "contract.approval.kind")}`, async () => {
    const b = await bench();
    await b.act("db.create");
    await b.act("pay.charge", { depends_on: [0] });
    await b.act("db.create");
    const waiting = {
      compensated: [2],
      awaiting_approval: [1],
      deferred: [{ step: 0, blocked_by: [1] }],
      complete: false,
    };
    expect(await b.rollback()).toMatchObject(waiting);
    expect(await b.rollback()).toMatchObject({ ...waiting, compensated: [] });
    const [request, ...others] = await b.requests();
    expect(others).toEqual([]);
    expect(request).toMatchObject({
      kind: "compensation",
      step: 1,
      tool: "pay.refund",
      status: "pending",
      arg_names: ["id"],
      run_id: "r1",
    });
    await expect(beginCompensation(b.core, b.operator, "r1", 1)).rejects.toThrow(
      `approval required: request ${request?.id} is pending an operator decision; retry after it is approved`,
    );
    expect(b.requested).toEqual([request?.id]);
    expect(await b.run()).toMatchObject({ awaiting: 1, open_approvals: 1 });
    expect(b.world.order).toEqual([2]);
  });

  it("continues once approved, and spends the approval", async () => {
    const b = await bench();
    await b.act("pay.charge");
    await b.rollback();
    const id = await b.decide("approve");
    expect(await b.run()).toMatchObject({ awaiting: 1, open_approvals: 0 });
    expect(await b.rollback()).toMatchObject({ compensated: [0], complete: true });
    expect(await b.undoTrail()).toEqual(["approved 0", "approved 0", "compensating 0", "compensated 0"]);
    const used = (await b.trail())
      .filter(({ event }) => event === "approved")
      .map(({ actor, detail }) => `${actor}: ${detail}`);
    expect(used).toEqual([`ann: request ${id}`, `engine: used request ${id}`]);
    expect(await b.store.get("approvals", id)).toMatchObject({ status: "consumed" });
  });

  it("needs no second approval to be tried again", async () => {
    const b = await bench();
    await b.act("pay.charge");
    await b.rollback();
    await b.decide("approve");
    b.world.fails = () => "no";
    await b.rollback({ retries: 1 });
    b.world.fails = () => undefined;
    expect(await b.rollback()).toMatchObject({ compensated: [0], complete: true });
    expect(await b.requests()).toHaveLength(1);
    expect(await b.run()).toMatchObject({ awaiting: 0, open_approvals: 0, compensation_failed: 0 });
  });

  it("is asked for again after a denial, and counted once", async () => {
    const b = await bench();
    await b.act("pay.charge");
    await b.rollback();
    await b.decide("deny");
    expect(await b.run()).toMatchObject({ awaiting: 0, open_approvals: 0 });
    expect(await b.rollback()).toMatchObject({ awaiting_approval: [0] });
    expect((await b.requests()).map(({ status }) => status).sort()).toEqual(["denied", "pending"]);
    expect(await b.run()).toMatchObject({ awaiting: 1, open_approvals: 1 });
    await b.decide("approve");
    expect(await b.rollback()).toMatchObject({ compensated: [0] });
    expect(await b.run()).toMatchObject({ awaiting: 0, open_approvals: 0 });
  });

  it("is asked for again when its approval was not used in time, or nobody decided", async () => {
    const b = await bench();
    await b.act("pay.charge");
    await b.rollback();
    b.env.setNow(b.env.now() + SERVICE_LIMITS.approval_ttl_ms + 1);
    expect(await b.rollback()).toMatchObject({ awaiting_approval: [0] });
    expect(await b.run()).toMatchObject({ awaiting: 1, open_approvals: 1 });
    await b.decide("approve");
    b.env.setNow(b.env.now() + SERVICE_LIMITS.approval_ttl_ms + 1);
    expect(await b.rollback()).toMatchObject({ awaiting_approval: [0] });
    expect(await b.run()).toMatchObject({ awaiting: 1, open_approvals: 1 });
    expect((await b.requests()).map(({ status }) => status).sort()).toEqual([
      "expired",
      "expired",
      "pending",
    ]);
    expect(b.recorded.filter((event) => event === "approval_expired")).toHaveLength(2);
    expect(b.world.calls).toEqual([]);
  });

  it(`may be approved with all others by the operator ${verifies("core.compensation-approval.cli-all")}`, async () => {
    const b = await bench();
    await b.act("pay.charge");
    await b.act("pay.charge");
    await b.rollback();
    const [first] = await b.requests();
    await b.decide("deny", first?.id);
    expect(await b.rollback({ approve_compensations: true })).toMatchObject({
      compensated: [1, 0],
      complete: true,
    });
    expect(await b.run()).toMatchObject({ awaiting: 0, open_approvals: 0 });
    const approvals = (await b.trail()).filter(({ event }) => event === "approved");
    expect(approvals.map(({ actor, step }) => `${actor} ${step}`)).toEqual(["olga 1", "olga 0"]);
    expect((await b.requests()).map(({ status }) => status).sort()).toEqual(["consumed", "denied"]);
  });

  it(`needs it by the manifest of its time, regardless of later edits ${verifies("core.compensation-approval.snapshot")}`, async () => {
    const b = await bench();
    await b.act("pay.charge");
    await b.act("db.create");
    const { rules } = b.core;
    const manifests = rules().manifests;
    const edited = manifests.all.map((manifest) => ({
      ...manifest,
      compensation: manifest.compensation && {
        ...manifest.compensation,
        requires_approval: manifest.tool === "db.create",
      },
    }));
    b.core.rules = () => ({
      ...rules(),
      manifests: { ...manifests, active: (tool) => edited.find((one) => one.tool === tool) },
    });
    expect(await b.rollback()).toMatchObject({ compensated: [1], awaiting_approval: [0] });
  });
});
