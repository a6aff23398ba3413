import { describe, expect, it } from "vitest";
import { rollbackBench, TOOLS } from "../../../test/sim/rollback-fixture.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { compensationKey } from "../../govern/document-keys.ts";
import type { PayloadDoc, StepDoc, StepStatus } from "../../govern/runs/run.ts";
import { readManifests } from "../../rules/manifest/load.ts";
import { manifestSet } from "../../rules/manifest/set.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { MAX_BLOCKERS } from "./dependents.ts";
import { loadPlan } from "./load-run.ts";
import { planRollback } from "./plan.ts";

async function planned(
  acts: [tool: string, act?: Parameters<ReturnType<typeof rollbackBench>["act"]>[1]][],
  mode: "enforce" | "observe" = "enforce",
) {
  const bench = rollbackBench();
  await bench.openRun("r1", mode);
  for (const [tool, act] of acts) await bench.act(tool, act);
  return loadPlan(bench.store, "r1");
}
const kinds = (plan: Awaited<ReturnType<typeof planned>>): string[] =>
  plan.actions.map((a) => `${a.step} ${a.kind}${a.kind === "defer" ? ` ${a.blocked_by}` : ""}`);

describe("the rollback plan", () => {
  it(`says all there is to an undo ${verifies("core.plan.kind-compensate", "core.plan.shape", "core.plan.action-fields", "core.plan.compensate-fields", "core.plan.needs-approval", "core.plan.residue", "core.plan.compensation-kind", "core.manifest.compensation-args-from-args", "core.manifest.compensation-args-from-result", "core.plan.verified", "contract.workers.key")}`, async () => {
    const plan = await planned([
      ["db.create", { args: { name: "ann" }, result: { id: 7, noise: 1 } }],
      ["pay.charge"],
      ["crm.add"],
    ]);
    expect(plan).toEqual({
      run_id: "r1",
      actions: [
        expect.objectContaining({
          step: 2,
          tool: "crm.add",
          kind: "compensate",
          verified: true,
          needs_approval: false,
        }),
        expect.objectContaining({
          step: 1,
          needs_approval: true,
          compensation_kind: "compensation",
          residue: [],
        }),
        {
          step: 0,
          tool: "db.create",
          kind: "compensate",
          compensation_tool: "db.delete",
          args: { id: 7, name: "ann" },
          idempotency_key: compensationKey("r1", 0),
          needs_approval: false,
          residue: ["an id was used up"],
          compensation_kind: "inverse",
          verified: false,
          proof: "never proven",
        },
      ],
      fully_reversible: true,
    });
  });

  it(`tells each kind, newest first ${verifies("core.plan.kind-skip", "core.plan.kind-unrecoverable-irreversible", "core.plan.kind-unrecoverable-arguments", "core.plan.kind-unresolved", "core.plan.kind-unmanifested")}`, async () => {
    const acts: Parameters<typeof planned>[0] = [
      ["db.read"],
      ["db.touch"],
      ["mail.send"],
      ["db.create", { result: { other: 1 } }],
      ["db.create", { status: "uncertain" }],
      ["db.create", { status: "intended" }],
      ["db.create", { status: "failed" }],
      ["nobody.knows"],
      ["db.flag", { args: { id: 1 } }],
    ];
    const plan = await planned(acts, "observe");
    expect(kinds(plan)).toEqual([
      "8 compensate",
      "7 unmanifested",
      "5 unresolved",
      "4 unresolved",
      "3 unrecoverable",
      "2 unrecoverable",
      "1 skip",
      "0 skip",
    ]);
    expect(plan.fully_reversible).toBe(false);
  });

  it(`is fully reversible with undoable and harmless steps alone, residue or not ${verifies("core.plan.fully-reversible-true", "core.plan.residue-does-not-count", "core.plan.fully-reversible-assumes-success")}`, async () => {
    expect(
      (
        await planned([
          ["db.create"],
          ["db.fill"],
          ["db.read"],
          ["db.touch"],
          ["db.create", { status: "failed" }],
        ])
      ).fully_reversible,
    ).toBe(true);
    for (const tool of ["mail.send", "nobody.knows"]) {
      expect((await planned([["db.create"], [tool]], "observe")).fully_reversible).toBe(false);
    }
    expect((await planned([])).fully_reversible).toBe(true);
  });

  it(`defers what a step that stays depends on ${verifies("core.plan.kind-defer", "core.manifest.requires-orders-rollback", "core.plan.defer-blocked-by", "contract.readings.requires-dependencies")}`, async () => {
    const byName = await planned([["db.create"], ["db.create"], ["mail.send", { depends_on: [0] }]]);
    expect(kinds(byName)).toEqual(["2 unrecoverable", "1 compensate", "0 defer 2"]);
    const byTool = await planned([
      ["db.create"],
      ["db.create"],
      ["mail.about"],
      ["mail.about"],
      ["db.create"],
    ]);
    expect(kinds(byTool)).toEqual([
      "4 compensate",
      "3 unrecoverable",
      "2 unrecoverable",
      "1 defer 2,3",
      "0 defer 2,3",
    ]);
    const unresolved = await planned([["db.create"], ["db.fill", { status: "uncertain" }]]);
    expect(kinds(unresolved)).toEqual(["1 unresolved", "0 defer 1"]);
  });

  it("takes a required tool's steps as they were when the dependent was accepted", async () => {
    const bench = rollbackBench();
    await bench.openRun();
    await bench.act("db.create");
    const late = await bench.act("db.create", { status: "intended" });
    await bench.act("mail.about");
    await bench.outcome(bench.agent, "r1", late, { status: "succeeded", result: { id: 2 } });
    expect(kinds(await loadPlan(bench.store, "r1"))).toEqual([
      "2 unrecoverable",
      "1 compensate",
      "0 defer 2",
    ]);
  });

  it("defers along a chain, and through steps that need no undo", async () => {
    const chain = await planned([
      ["db.create"],
      ["db.create", { depends_on: [0] }],
      ["mail.send", { depends_on: [1] }],
    ]);
    expect(kinds(chain)).toEqual(["2 unrecoverable", "1 defer 2", "0 defer 1"]);
    const read = await planned([["db.create"], ["db.peek"]]);
    expect(kinds(read)).toEqual(["1 skip", "0 compensate"]);
    const through = await planned([["db.create"], ["db.peek"], ["mail.after_peek"]]);
    expect(kinds(through)).toEqual(["2 unrecoverable", "1 skip", "0 defer 2"]);
  });

  it("keeps to the manifest that the step was accepted under", async () => {
    const bench = rollbackBench();
    await bench.openRun();
    await bench.act("db.create");
    await bench.act("pay.charge");
    const before = await loadPlan(bench.store, "r1");
    const edited = readManifests([
      {
        file: "m",
        text: TOOLS.replaceAll("db.delete", "db.drop").replace(
          "requires_approval: true",
          "requires_approval: false",
        ),
      },
    ]);
    bench.core.rules = () => ({ manifests: edited, policy: bench.core.rules().policy });
    expect(await loadPlan(bench.store, "r1")).toEqual(before);
  });

  it("refuses a run that nobody knows, and one whose scope was edited", async () => {
    const bench = rollbackBench();
    await expect(loadPlan(bench.store, "r9")).rejects.toMatchObject({ code: "not_found" });
    await bench.openRun();
    const run = await bench.run();
    await bench.store.transact({
      run: (tx) => tx.put("runs", "r1", { ...run, scope: { ...run.scope, permissions: ["all"] } }),
    });
    await expect(loadPlan(bench.store, "r1")).rejects.toThrow("scope seal mismatch");
  });

  it("of an interrupted or failed undo is to undo it", async () => {
    const bench = rollbackBench();
    await bench.openRun();
    await bench.act("db.create");
    for (const status of ["compensating", "compensation_failed"] satisfies StepStatus[]) {
      const step = { ...(await bench.step(0)), status };
      await bench.store.transact({ run: (tx) => tx.put("steps", "r1/0", step) });
      expect(kinds(await loadPlan(bench.store, "r1"))).toEqual(["0 compensate"]);
    }
  });
});

describe("the plan of a long run", () => {
  const tools = readManifests([{ file: "m", text: TOOLS }]);
  const set = manifestSet(tools.all);
  const manifests = new Map<string, ToolManifest>(
    tools.all.map((manifest) => [set.hashOf(manifest), manifest]),
  );

  /** Steps that note every look at them, so that work is counted and not timed. */
  function longRun(length: number, toolOf: (n: number) => string) {
    let looks = 0;
    const payloads: PayloadDoc[] = [];
    const steps = Array.from({ length }, (_, n): StepDoc => {
      const manifest = tools.active(toolOf(n))!;
      payloads[n] = { refs: { "$result.id": n, "$args.name": "x" } };
      const doc: StepDoc = {
        run_id: "r1",
        step: n,
        tool: manifest.tool,
        reason: "",
        effect: manifest.effect,
        status: "succeeded",
        depends_on: n > 0 && n % 3 === 0 ? [n - 1] : [],
        requires: manifest.requires,
        compensation_tool: manifest.compensation?.tool ?? null,
        handle: manifest.compensation ? `k${n}` : null,
        error: null,
        manifest_version: "1",
        manifest_hash: set.hashOf(manifest),
        risk_score: 0,
        args_hash: "",
        result_hash: null,
        intended_ms: 0,
        finished_ms: 0,
        intended_seq: 2 * n,
        succeeded_seq: 2 * n + 1,
        compensated_seq: null,
        idempotency: null,
      };
      const get = (target: StepDoc, name: string | symbol): unknown => {
        looks++;
        return Reflect.get(target, name);
      };
      return new Proxy(doc, { get });
    });
    const plan = planRollback({ run_id: "r1" }, steps, manifests, payloads);
    return { plan, looks };
  }

  it.each([
    ["undoable steps that require one another", (n: number) => (n % 2 === 0 ? "db.create" : "db.fill")],
    ["irreversible steps over undoable ones", (n: number) => (n % 2 === 0 ? "db.create" : "mail.about")],
    [
      "reads between irreversible and undoable ones",
      (n: number) => ["db.create", "db.peek", "mail.after_peek"][n % 3]!,
    ],
  ])("is made in linear work: %s", (_, toolOf) => {
    const small = longRun(1_000, toolOf);
    const large = longRun(10_000, toolOf);
    expect(large.plan.actions).toHaveLength(10_000);
    expect(large.looks / small.looks).toBeLessThan(10.5);
    const blockers = large.plan.actions.map((action) =>
      action.kind === "defer" ? action.blocked_by.length : 0,
    );
    expect(Math.max(...blockers)).toBeLessThanOrEqual(MAX_BLOCKERS);
  });
});
