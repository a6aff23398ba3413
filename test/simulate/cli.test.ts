/** The commands as a person uses them: outputs, exit codes, and one clear line for every mistake. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Spoken, speak } from "../support/io.ts";
import { verifies } from "../support/verifies.ts";
import { type Capturing, capturing, NOON } from "./support.ts";

const HOUR = 3_600_000;
const POLICY = `version: 1
rules:
  - {id: big, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 90}], action: deny, reason: too much}
`;
const STRICT = `version: 1
rules:
  - {id: big-charges, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 15}], action: deny, reason: charges over 15 are off}
  - {id: ask-first, match: {tool: crm.get}, action: require_approval, reason: reads are watched}
`;

let s: Capturing;
beforeAll(async () => {
  s = await capturing({ policy: POLICY, durable: true, capture: "{enabled: true, ttl: 2h}" });
  await s.open("run-1");
  await s.call("run-1", "crm.get", { who: "ann@example.com" }, { found: 1 });
  s.env.setNow(NOON + HOUR);
  for (const amount of [10, 20]) await s.call("run-1", "pay.charge", { amount }, { id: amount });
  await s.ask("run-1", "pay.charge", { amount: 99 });
  await s.open("run-2");
  await s.call("run-2", "pay.charge", { amount: 30 }, { id: 30 });
  await s.close();
  writeFileSync(join(s.folder, "strict.yaml"), STRICT);
});

const svc = (
  args: string[],
  options: { tty?: boolean; env?: Record<string, string>; at?: number } = {},
): Promise<Spoken> => {
  const now = options.at ?? NOON + HOUR;
  const env = { SVC_LOG_LEVEL: "error", ...options.env };
  return speak(args, { cwd: s.folder, clock: { ...s.env, now: () => now }, tty: options.tty ?? false, env });
};

describe("svc capture", () => {
  it("lists one line a call: time, run and step, tool, decision, outcome, arguments", async () => {
    verifies("ops.capture-list.line");
    const { code, out } = await svc(["capture", "list"]);
    expect(code).toBe(0);
    expect(
      out
        .split("\n")
        .slice(0, -1)
        .map((line) => line.replaceAll(/ {2,}/g, "  ")),
    ).toEqual([
      '2026-06-15T12:00:00.000Z  run-1 #0  crm.get  allow  succeeded  {"who":"[PII:email]"}',
      '2026-06-15T13:00:00.000Z  run-1 #1  pay.charge  allow  succeeded  {"amount":10}',
      '2026-06-15T13:00:00.000Z  run-1 #2  pay.charge  allow  succeeded  {"amount":20}',
      '2026-06-15T13:00:00.000Z  run-1 -  pay.charge  block  -  {"amount":99}',
      '2026-06-15T13:00:00.000Z  run-2 #0  pay.charge  allow  succeeded  {"amount":30}',
    ]);
  });

  it("by run, by tool, by time, and as JSON", async () => {
    verifies(
      "ops.capture-list.run",
      "ops.capture-list.tool",
      "ops.capture-list.since",
      "ops.capture-list.json",
    );
    const lines = async (...args: string[]) =>
      (await svc(["capture", "list", ...args])).out.split("\n").length - 1;
    expect(await lines("--run", "run-2")).toBe(1);
    expect(await lines("--tool", "pay.charge")).toBe(4);
    expect(await lines("--since", "30m")).toBe(4);
    expect(await lines("--since", "2026-06-15T12:30:00Z", "--run", "run-1")).toBe(3);
    const { captures } = JSON.parse((await svc(["capture", "list", "--json"])).out);
    expect(captures).toHaveLength(5);
    expect(captures[0]).toEqual({
      run_id: "run-1",
      step: 0,
      tool: "crm.get",
      actor: "bot",
      tenant: null,
      environment: null,
      args: { who: "[PII:email]" },
      result: { found: 1 },
      decision: "allow",
      verdict: "allow",
      reasons: [],
      outcome: "succeeded",
      manifest_version: "1",
      risk_score: 0,
      captured_ms: NOON,
      expires_ms: NOON + 2 * HOUR,
      redacted: true,
    });
    expect(captures[3]).not.toHaveProperty("result");
    expect(captures[3].reasons).toEqual(["too much"]);
    const none = await svc(["capture", "list", "--run", "none", "--json"]);
    expect(JSON.parse(none.out)).toEqual({ captures: [] });
  });

  it("fits a terminal, and says when there is nothing", async () => {
    const { out } = await svc(["capture", "list"], { tty: true, env: { COLUMNS: "60" } });
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(60);
    const none = await svc(["capture", "list", "--run", "none"]);
    expect([none.code, none.out, none.err]).toEqual([0, "", "no captured calls\n"]);
    const bad = await svc(["capture", "list", "--since", "soon"]);
    expect([bad.code, bad.err]).toEqual([1, expect.stringContaining("--since")]);
  });
});

it("svc doctor tells whether capture is on", async () => {
  verifies("ops.capture-config.doctor");
  const told = async (env: Record<string, string>) =>
    (await svc(["doctor"], { env })).out.split("\n").find((line) => /^\w+ +capture /.test(line));
  expect(await told({})).toMatch(/capture.*\bon\b/);
  expect(await told({ SVC_CAPTURE: "0" })).toMatch(/capture.*\boff\b/);
});

describe("svc simulate", () => {
  it("reads like a review, and exits 2 when something is newly blocked", async () => {
    verifies("ops.simulate.command", "ops.simulate.exit-2", "core.cli.exit-2-simulation");
    const { code, out } = await svc(["simulate", "--policy", "strict.yaml"]);
    expect(code).toBe(2);
    const lines = out.split("\n").map((line) => line.replaceAll(/ {3,}/g, "   "));
    expect(lines.slice(0, 7)).toEqual([
      "strict.yaml, since 2026-06-08T13:00Z: 5 captured calls in 2 runs",
      "2 calls newly blocked by rule big-charges, in 2 runs: run-1, run-2",
      "   pay.charge: charges over 15 are off",
      "1 call newly needs approval by rule ask-first, in 1 run: run-1",
      "   crm.get: reads are watched",
      "2 calls unchanged",
      "",
    ]);
    expect(out).toMatch(/run-2 +0 +pay\.charge +allow +-> +block +charges over 15 are off/);
    const harmless = await svc(["simulate", "--policy", "policy.yaml"]);
    expect([harmless.code, harmless.out]).toEqual([0, expect.stringContaining("5 calls unchanged")]);
  });

  it("takes a period, a run, JSON, and the policy in force where none is named", async () => {
    verifies("ops.simulate.since", "ops.simulate.run", "ops.simulate.json");
    const calls = async (...args: string[]) => {
      const { out } = await svc(["simulate", "--json", ...args]);
      return JSON.parse(out).summary.calls;
    };
    expect(await calls()).toBe(5);
    expect(await calls("--since", "10m")).toBe(4);
    expect(await calls("--run", "run-2")).toBe(1);
    expect(await calls("--run", "run-1", "--since", "2h")).toBe(4);
    const none = await svc(["simulate", "--run", "none"]);
    expect([none.code, none.err]).toEqual([0, "no captured calls\n"]);
  });

  it("takes the newest version of a folder", async () => {
    verifies("ops.simulate.versions-folder");
    const folder = join(s.folder, "versions");
    mkdirSync(folder);
    writeFileSync(join(folder, "2.yaml"), "version: 1\n");
    writeFileSync(join(folder, "10.yaml"), STRICT);
    writeFileSync(join(folder, "9.yaml"), "not: a policy\n");
    writeFileSync(join(folder, "active"), "2\n");
    const { code, out } = await svc(["simulate", "--policy", "versions"]);
    expect([code, out.split(",")[0]]).toEqual([2, join("versions", "10.yaml")]);
    mkdirSync(join(s.folder, "hollow"));
    const hollow = await svc(["simulate", "--policy", "hollow"]);
    expect([hollow.code, hollow.err]).toEqual([1, expect.stringContaining("contains no policy version")]);
  });

  it("is colourful and narrow on a terminal only", async () => {
    const { out } = await svc(["simulate", "--policy", "strict.yaml"], { tty: true, env: { COLUMNS: "70" } });
    expect(out).toContain("\u001b[31m2 calls newly blocked");
    for (const line of out.split("\n")) {
      const plain = line.replaceAll(/\u001b\[\d+m/g, "");
      expect([plain, plain.length <= 70]).toEqual([plain, true]);
    }
  });

  it.each([
    [["--policy", "nope.yaml"], "nope.yaml: does not exist"],
    [["--policy", "svc.config.yaml"], "svc.config.yaml:1:1: manifests: unknown key"],
    [["--since", "never"], "--since"],
    [["--policy", "/dev/zero"], "is a device, not a file"],
    [["--frobnicate"], "unknown option"],
  ])("refuses %j with one clear line", async (args, problem) => {
    const { code, out, err } = await svc(["simulate", ...args]);
    expect([code, out, err]).toEqual([1, "", expect.stringContaining(problem)]);
  });
});

describe("svc replay", () => {
  it("takes all three forms of --set and a policy, and compares", async () => {
    verifies("ops.replay.command", "ops.replay.policy");
    const { code, out } = await svc([
      "replay",
      "run-1",
      "--set",
      "2.$args.amount=95",
      "--set",
      "tool:crm.get/who=bob",
    ]);
    expect(code).toBe(0);
    const lines = out.split("\n").map((line) => line.replaceAll(/ {2,}/g, "  ").trimEnd());
    expect(lines.slice(0, -1)).toEqual([
      "run run-1: 4 calls, 2 changed, 1 difference",
      "  step  tool  decision",
      "  2  pay.charge  allow -> block  undo compensate -> none  too much",
      "baseline rollback: fully reversible (2 compensate, 1 skip)",
      "variant rollback: fully reversible (1 compensate, 1 skip)",
    ]);
    const policy = await svc(["replay", "run-1", "--policy", "strict.yaml", "--set", "amount=1"]);
    expect(policy.out).toContain("run run-1: 4 calls, 3 changed, 2 differences");
  });

  it("prints JSON", async () => {
    verifies("ops.replay.json");
    const { out } = await svc(["replay", "run-2", "--set", "amount=95", "--json"]);
    expect(JSON.parse(out).differences).toMatchObject([{ step: 0, variant: { decision: "block" } }]);
  });

  it.each([
    [["run-1"], "no change given: pass --set"],
    [["run-1", "--set", "amont=1"], "$args.amont does not exist in any captured call of run run-1"],
    [["run-1", "--set", "amount"], "write <path>=<value>"],
    [["run-1", "--set", "7.amount=1"], "step 7: no captured call of run run-1 matches"],
    [["none", "--set", "amount=1"], "run none has no captured calls"],
    [["run-1", "--policy", "manifests.yaml"], "manifests.yaml:2:1: (document): must be a mapping"],
  ])("refuses %j", async (args, problem) => {
    const { code, err } = await svc(["replay", ...args]);
    expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
    expect(err.split("\n").length).toBeLessThanOrEqual(20);
  });
});

describe("svc impact", () => {
  it("tells the decision, the risk, the undo and the warnings", async () => {
    verifies("ops.impact.command", "beyond.drill.words");
    const { code, out } = await svc(["impact", "pay.charge", "--args", '{"amount":95}']);
    expect(code).toBe(0);
    expect(
      out
        .split("\n")
        .slice(0, -1)
        .map((line) => line.replaceAll(/ {2,}/g, "  ")),
    ).toEqual([
      "pay.charge: block",
      "  too much",
      "  risk  0 (effect 0, blast radius 0, data class 0, environment 0)",
      "  labels  effect compensable, data class financial, blast radius external, version 1",
      "  undo  pay.refund (compensation, not read back, needs approval, never proven)",
      "warning: unverified undo: no read-back is declared, so its effect is not checked",
    ]);
    const json = await svc(["impact", "crm.create", "--actor", "ann", "--json"]);
    expect(JSON.parse(json.out)).toMatchObject({ actor: "ann", decision: "allow", requires: ["crm.open"] });
    const other = await svc(["impact", "crm.get", "--policy", "strict.yaml", "--json"]);
    expect(JSON.parse(other.out)).toMatchObject({ actor: "cli", decision: "needs_approval" });
    const unknown = await svc(["impact", "no.such"]);
    expect(unknown.out).toMatch(/no\.such: block\n.*\n.*\n +undo +unknown\nwarning: unclassified tool/);
  });

  it.each([
    [["pay.charge", "--args", "{"], "args: invalid JSON"],
    [[], "missing required argument"],
    [["t", "--policy", "nope.yaml"], "nope.yaml: does not exist"],
  ])("refuses %j", async (args, problem) => {
    const { code, err } = await svc(["impact", ...args]);
    expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
  });
});

describe("svc speculate", () => {
  const plans = (text: string) => {
    writeFileSync(join(s.folder, "plans.yaml"), text);
    return ["speculate", "plans.yaml"];
  };
  const GOOD = `plans:
  - name: charge
    calls:
      - {tool: pay.charge, args: {amount: 5}, result: {id: 1}}
  - name: mail
    calls: [{tool: mail.send}, {tool: pay.charge, args: {amount: 95}}, {tool: crm.get}]
`;

  it("ranks the plans of a file", async () => {
    verifies("ops.speculate.command", "ops.speculate.file");
    const { code, out } = await svc(plans(GOOD));
    expect(code).toBe(0);
    expect(
      out
        .split("\n")
        .slice(0, -1)
        .map((line) => line.replaceAll(/ {2,}/g, "  ")),
    ).toEqual([
      "  plan  rank  outcome  approvals  highest  undo",
      "*  charge  0  runs to the end  0 approvals  risk 0  fully reversible",
      "  mail  10075  blocked at call 1  0 approvals  risk 0  not fully reversible",
      "recommended: charge",
      "mail:",
      "  pay.charge is blocked: too much",
      "  cannot be undone: mail.send",
      "  1 of its calls follow the blocked one and were not evaluated",
    ]);
    const json = await svc([...plans(GOOD), "--json", "--policy", "strict.yaml", "--actor", "ann"]);
    expect(JSON.parse(json.out).recommended).toBe("charge");
  });

  it.each([
    ["plans: []", "plans: the list is empty"],
    ["plans:\n  - {name: a, calls: []}", 'plans[0].calls: "a" has no calls'],
    [
      "plans:\n  - {name: a, calls: [{tool: t}]}\n  - {name: a, calls: [{tool: t}]}",
      'another plan is called "a"',
    ],
    ["plans:\n  - {nam: a, calls: [{tool: t}]}", "plans.yaml:2:6: plans[0].nam: unknown key"],
    ["plans:\n  - {name: a, calls: [{tool: 7}]}", "plans.yaml:2:30: plans[0].calls[0].tool: must be text"],
    ["- a", "plans.yaml:1:1"],
    ["plans: &a [*a]", "plans.yaml:1:"],
  ])("refuses %j", async (text, problem) => {
    const { code, err } = await svc(plans(text));
    expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
  });

  it("is on the command line and the API only", async () => {
    verifies("ops.speculate.no-other-surface");
    const { filesUnder, sourceFile } = await import("../support/files.ts");
    const surfaces = ["console", "gateway"].flatMap((folder) => filesUnder(`src/${folder}`, ".ts"));
    expect(surfaces.filter((path) => /speculat/i.test(sourceFile(path).withStrings))).toEqual([]);
  });
});

describe("svc capture purge", () => {
  it("deletes expired calls, or all of one run, and prints their number", async () => {
    verifies("ops.capture-purge.line", "ops.capture-state.purge-expired", "ops.capture-state.purge-run");
    expect((await svc(["capture", "purge"])).out).toBe("removed 0 captured calls\n");
    expect((await svc(["capture", "purge"], { at: NOON + 2 * HOUR })).out).toBe("removed 1 captured calls\n");
    expect((await svc(["capture", "purge", "--run", "run-2"])).out).toBe("removed 1 captured calls\n");
    expect((await svc(["capture", "list"])).out.split("\n")).toHaveLength(4);
    expect((await svc(["capture", "purge", "--run", "none"])).out).toBe("removed 0 captured calls\n");
  });
});
