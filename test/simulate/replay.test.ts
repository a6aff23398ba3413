/** Replay: a run as recorded and with changes, the decisions and the plans of both. */
import { describe, expect, it } from "vitest";
import { parseSet } from "../../src/cli/commands/policy/replay.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { approveRequest } from "../../src/operations/approvals/approvals.ts";
import { principal } from "../support/engine.ts";
import { verifies } from "../support/verifies.ts";
import { type Capturing, capturing, everythingOf, RESTORED, replayed } from "./support.ts";

const POLICY = `
version: 1
rules:
  - {id: big, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 50}], action: require_approval, reason: big}
  - {id: huge, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 90}], action: deny, reason: huge}
`;

async function run(): Promise<Capturing> {
  const s = await capturing({ policy: POLICY });
  await s.open("r");
  await s.call("r", "crm.open", {});
  await s.call("r", "crm.create", { email: "ann@example.com", n: 1 }, { id: 1 });
  await s.call("r", "pay.charge", { amount: 10, to: { iban: "x" } }, { id: 2 });
  await s.call("r", "pay.charge", { amount: 20, to: { iban: "y" } }, { id: 3 });
  return s;
}

describe("the report", () => {
  it("has the run twice, the differences, and both plans", async () => {
    verifies("ops.replay-report.keys", "ops.replay-report.both-decisions", "ops.replay.twice");
    verifies("ops.replay.compares", "ops.replay.http-body");
    const s = await run();
    const report = await replayed(s, "r", [{ step: 2, path: "$args.amount", value: 95 }]);
    expect(Object.keys(report).sort()).toEqual([
      "baseline",
      "baseline_plan",
      "differences",
      "variant",
      "variant_plan",
    ]);
    expect(report.baseline.map(({ step, decision }) => [step, decision])).toEqual(
      [0, 1, 2, 3].map((step) => [step, "allow"]),
    );
    expect(report.variant.map(({ decision, changed }) => [decision, changed])).toEqual([
      ["allow", false],
      ["allow", false],
      ["block", true],
      ["allow", false],
    ]);
    expect(report.variant[2]).toEqual({
      call: 2,
      step: 2,
      tool: "pay.charge",
      decision: "block",
      reasons: ["big", "huge"],
      risk_score: 0,
      recorded: { decision: "allow", reasons: [] },
      changed: true,
      notes: [],
    });
    expect(report.differences).toEqual([
      {
        call: 2,
        step: 2,
        tool: "pay.charge",
        recorded: "allow",
        baseline: { decision: "allow", reasons: [], undo: "compensate" },
        variant: { decision: "block", reasons: ["big", "huge"], undo: null },
      },
    ]);
    const kinds = (plan: typeof report.baseline_plan) => plan.actions.map(({ step, kind }) => [step, kind]);
    expect(kinds(report.baseline_plan)).toEqual([
      [3, "compensate"],
      [2, "compensate"],
      [1, "compensate"],
      [0, "skip"],
    ]);
    expect(kinds(report.variant_plan)).toEqual([
      [3, "compensate"],
      [1, "compensate"],
      [0, "skip"],
    ]);
    expect(report.variant_plan.run_id).toBe("r");
  });

  it("plans the undo of a call with a read before it, which is not captured, with made-up values", async () => {
    verifies("beyond.before.sandbox");
    const s = await capturing({ manifests: RESTORED });
    await s.open("r");
    const args = { id: "a", text: "new" };
    await s.ask("r", "doc.write", args);
    const before = { found: true, text: "old" };
    await s.done("r", 0, { status: "succeeded", before, after: { found: true, text: "new" } });
    const { baseline_plan } = await replayed(s, "r", [{ path: "$args.text", value: "newer" }]);
    expect(baseline_plan.fully_reversible).toBe(true);
    expect(baseline_plan.actions).toMatchObject([
      { kind: "compensate", args: { id: "a", text: "<$before.text>" } },
    ]);
  });

  it("shows no difference where nothing is decided otherwise, but the changed undo", async () => {
    const s = await run();
    const report = await replayed(s, "r", [{ tool: "pay.charge", path: "$args.amount", value: 30 }]);
    expect(report.differences).toEqual([]);
    const args = report.variant_plan.actions.flatMap((action) => ("args" in action ? [action.args] : []));
    expect(args.slice(0, 2)).toEqual([
      { id: 3, amount: 30 },
      { id: 2, amount: 30 },
    ]);
  });

  it("carries a refusal on to what needs the refused call", async () => {
    const s = await run();
    const report = await replayed(
      s,
      "r",
      [],
      `${POLICY}  - {id: shut, match: {tool: crm.open}, action: deny, reason: shut}\n`,
    );
    expect(report.differences.map(({ step, variant }) => [step, variant.reasons])).toEqual([
      [0, ["shut"]],
      [1, ["prerequisite crm.open has not succeeded in this run"]],
    ]);
  });

  it("applies a policy to the variant only", async () => {
    verifies("contract.readings.replay-policy");
    const s = await run();
    const report = await replayed(s, "r", [], "version: 1\nrules: [{id: no, action: deny}]");
    expect(new Set(report.baseline.map(({ decision }) => decision))).toEqual(new Set(["allow"]));
    expect(new Set(report.variant.map(({ decision }) => decision))).toEqual(new Set(["block"]));
    expect(report.variant_plan).toMatchObject({ actions: [], fully_reversible: true });
  });

  it("needs approval in the variant, and continues as if it was given", async () => {
    const s = await run();
    const report = await replayed(s, "r", [{ path: "$args.amount", value: 60 }]);
    expect(report.differences.map(({ step, variant }) => [step, variant.decision, variant.undo])).toEqual([
      [2, "needs_approval", "compensate"],
      [3, "needs_approval", "compensate"],
    ]);
  });

  it("leaves the real ledger and runs as they are", async () => {
    const s = await run();
    await s.captured();
    const before = await everythingOf(s.app.core.store);
    await replayed(s, "r", [{ path: "$args.amount", value: 95 }]);
    expect(await everythingOf(s.app.core.store)).toBe(before);
  });
});

describe("calls that history refused", () => {
  it("run in the variant when it lets them through, numbered behind the recorded steps", async () => {
    const s = await capturing({ policy: POLICY });
    await s.open("r");
    await s.ask("r", "pay.charge", { amount: 95 });
    await s.call("r", "crm.get", {});
    const report = await replayed(s, "r", [{ path: "$args.amount", value: 5 }]);
    expect(report.differences).toMatchObject([
      {
        call: 0,
        step: null,
        baseline: { decision: "block", undo: null },
        variant: { decision: "allow", undo: "compensate" },
      },
    ]);
    expect(report.variant_plan.actions[0]).toMatchObject({
      step: 1,
      args: { id: "<$result.id>", amount: 5 },
    });
    expect(report.variant[0]!.notes[0]).toContain("synthetic result from its manifest");
  });

  it("are the same call when history made them again with an approval", async () => {
    const s = await capturing({ policy: POLICY });
    await s.open("r");
    const asked = (await s.ask("r", "pay.charge", { amount: 80 })) as { reasons: string[] };
    const id = /request (apr_\S+)/.exec(asked.reasons.join())![1];
    await s.perform(approveRequest, { approval_id: id! }, principal("boss", "approver"));
    await s.call("r", "pay.charge", { amount: 80 }, { id: 9 });
    const report = await replayed(s, "r", [{ path: "$args.amount", value: 5 }]);
    expect(report.baseline.map(({ decision }) => decision)).toEqual(["needs_approval", "allow"]);
    expect(report.variant.map(({ decision }) => decision)).toEqual(["allow", "allow"]);
    expect(report.variant_plan.actions).toHaveLength(1);
    expect(report.variant_plan.actions[0]).toMatchObject({ step: 0, args: { id: 9, amount: 5 } });
  });
});

describe("logical calls", () => {
  it("a change that makes two of them one is refused as a repeat", async () => {
    const s = await capturing({
      manifests: "- {tool: t, effect: read, permission: p, idempotency: $args.key}\n",
    });
    await s.open("r");
    for (const key of ["a", "b", "c"]) await s.call("r", "t", { key, n: 1 });
    const same = await replayed(s, "r", [{ step: 1, path: "$args.key", value: "a" }]);
    expect(same.differences.map(({ step, variant }) => [step, variant.reasons])).toEqual([
      [
        1,
        [
          expect.stringContaining(
            "idempotency: the same logical call is already active as step 0 of this run",
          ),
        ],
      ],
    ]);
    const ahead = await replayed(s, "r", [{ step: 0, path: "$args.key", value: "c" }]);
    expect(ahead.differences.map(({ step }) => step)).toEqual([2]);
    expect((await replayed(s, "r", [{ path: "$args.n", value: 2 }])).differences).toEqual([]);
  });
});

describe("changes", () => {
  it.each([
    ["$args.amount=20", { step: null, tool: null, path: "$args.amount", value: 20 }],
    ["amount=20", { step: null, tool: null, path: "$args.amount", value: 20 }],
    [".amount=20", { step: null, tool: null, path: "$args.amount", value: 20 }],
    ["to.iban=word", { step: null, tool: null, path: "$args.to.iban", value: "word" }],
    ["2.$args.amount=-1.5", { step: 2, tool: null, path: "$args.amount", value: -1.5 }],
    ["12.list[0]=null", { step: 12, tool: null, path: "$args.list[0]", value: null }],
    ["tool:pay.charge/$args.amount=5", { step: null, tool: "pay.charge", path: "$args.amount", value: 5 }],
    ["tool:pay.charge/amount=5", { step: null, tool: "pay.charge", path: "$args.amount", value: 5 }],
    ["tool:a/b/$args.x=true", { step: null, tool: "a/b", path: "$args.x", value: true }],
    ['$args["a=b"]=c=d', { step: null, tool: null, path: '$args["a=b"]', value: "c=d" }],
    ["$result.id=7", { step: null, tool: null, path: "$result.id", value: 7 }],
    ['x={"a":[1]}', { step: null, tool: null, path: "$args.x", value: { a: [1] } }],
    ["x=two words", { step: null, tool: null, path: "$args.x", value: "two words" }],
    ["x=", { step: null, tool: null, path: "$args.x", value: "" }],
  ])("--set %s", (source, change) => {
    verifies("ops.replay.set-json", "ops.replay.set-all", "ops.replay.set-step", "ops.replay.set-tool");
    expect(parseSet(source)).toEqual(change);
  });

  it.each([
    ["amount", "write <path>=<value>"],
    ["$nope.x=1", "is not a path"],
    ["a b=1", "is not a path"],
    ["x={broken", "invalid JSON"],
    ['x="open', "invalid JSON"],
    ["tool:/x=1", "write tool:<tool>/<path>=<value>"],
    ["tool:x=1", "write tool:<tool>/<path>=<value>"],
    ["x=9007199254740993", "x"],
  ])("--set %s is refused or read as it stands", (source, problem) => {
    if (source.endsWith("993")) expect(parseSet(source).value).toBe("9007199254740993");
    else expect(() => parseSet(source)).toThrow(problem);
  });

  it("reach one step, one tool's calls, or every call that has the path", async () => {
    const s = await run();
    const changed = async (change: { step?: number; tool?: string; path: string; value: JsonValue }) =>
      (await replayed(s, "r", [change])).variant.filter((call) => call.changed).map(({ step }) => step);
    expect(await changed({ path: "$args.amount", value: 1 })).toEqual([2, 3]);
    expect(await changed({ step: 3, path: "$args.amount", value: 1 })).toEqual([3]);
    expect(await changed({ tool: "crm.create", path: "$args.n", value: 1 })).toEqual([1]);
    expect(await changed({ path: "$result.id", value: 1 })).toEqual([1, 2, 3]);
    expect(await changed({ path: "$args", value: {} })).toEqual([0, 1, 2, 3]);
  });

  it("that reach nothing are named", async () => {
    const s = await run();
    const refused = (change: { step?: number; tool?: string; path: string }) =>
      expect(replayed(s, "r", [change, { path: "$args.amount", value: 1 }])).rejects;
    await refused({ path: "$args.amont" }).toThrow(
      "$args.amont does not exist in any captured call of run r",
    );
    await refused({ step: 2, path: "$args.n" }).toThrow("$args.n does not exist in step 2");
    await refused({ step: 9, path: "$args.amount" }).toThrow("step 9: no captured call of run r matches");
    await refused({ tool: "no.such", path: "$args.amount" }).toThrow("tool no.such: no captured call");
    await refused({ path: "$args.to.iban.deep" }).toThrow("$args.to.iban.deep does not exist");
    await refused({ path: "$args.__proto__" }).toThrow("does not exist");
    await refused({ path: "amount" }).toThrow("is not a path");
    await expect(replayed(s, "r", [{ path: "$args.one" }, { path: "$args.two" }])).rejects.toThrow(
      /\$args\.one .*; \$args\.two /,
    );
  });
});

it("notes the reads of redacted values, call by call", async () => {
  const s = await run();
  const policy =
    "version: 1\nrules: [{id: looks, action: deny, when: [{path: $args.email, op: eq, value: x}]}]";
  const report = await replayed(s, "r", [], policy);
  expect(report.variant.map(({ notes }) => notes.length)).toEqual([0, 1, 0, 0]);
  expect(report.variant[1]!.notes[0]).toContain("rule looks reads $args.email");
});

it("a run without captures cannot be replayed", async () => {
  const s = await run();
  await expect(replayed(s, "none", [])).rejects.toThrow("run none has no captured calls");
});
