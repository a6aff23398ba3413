/** How a decision's cost grows with the policy, and how it compares with general rule engines on the same rules. */
import { decideCall } from "../src/govern/decide/decide.ts";
import type { DecisionFacts } from "../src/govern/decide/facts.ts";
import { scopeSeal } from "../src/govern/runs/run.ts";
import { readManifests } from "../src/rules/manifest/load.ts";
import { compilePolicy } from "../src/rules/policy/compile.ts";
import type { PolicyDoc } from "../src/rules/policy/schema.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, type Row, ratio } from "./report.ts";

const MANIFESTS =
  "- {tool: payments.refund, effect: irreversible, permission: pay, risk: {data_class: financial}}";

/** `n` rules: one for the tool that is called, the others for other tools. */
export function policyOf(n: number): PolicyDoc {
  const rules = Array.from({ length: n }, (_, i) => ({
    id: `rule-${i}`,
    match: { tool: i === 0 ? "payments.*" : `tool${i}.*` },
    when: [{ path: "$args.amount", op: "gt" as const, value: 500 }],
    action: "deny" as const,
    reason: "too much",
  }));
  return { version: 1, rules };
}

/** `n` rules for the very tool that is called, each with a threshold that the call does not reach. */
function thresholds(n: number): PolicyDoc {
  const rules = Array.from({ length: n }, (_, i) => ({
    id: `rule-${i}`,
    match: { tool: "payments.refund" },
    when: [{ path: "$args.amount", op: "gt" as const, value: 500 + i }],
    action: "deny" as const,
    reason: "too much",
  }));
  return { version: 1, rules };
}

export function factsFor(doc: PolicyDoc): DecisionFacts {
  const policy = compilePolicy(doc);
  const manifest = readManifests([{ file: "m", text: MANIFESTS }]).active("payments.refund")!;
  const facts = { run_id: "r", actor: "bot", mode: "enforce" as const, tenant: null };
  const run = {
    ...facts,
    principal: "key:bot",
    environment: "prod",
    reason: null,
    scope: { permissions: ["pay"], seal: scopeSeal({ ...facts, permissions: ["pay"] }) },
    created_ms: 0,
    salt: "s",
    next_step: 0,
    next_run_seq: 0,
    open: 0,
    uncertain: 0,
    compensation_failed: 0,
    awaiting: 0,
    open_approvals: 0,
  };
  const args = { amount: 20, to: "acct-1", note: "duplicate charge" };
  return {
    now: 0,
    run,
    open_requests: 0,
    caller: { max_permissions: null, allow_observe: false },
    tool: manifest.tool,
    args,
    manifest,
    policy,
    call: {
      ...facts,
      tool: manifest.tool,
      args,
      environment: "prod",
      effect: manifest.effect,
      data_class: "financial",
      blast_radius: null,
      source: [],
      sink: [],
      step: 0,
    },
    halts: [],
    kill_switch: null,
    missing_prerequisites: [],
    fallen_dependencies: [],
    repeat_of: null,
    counters: new Map(),
    request: null,
    fresh_approval_id: "apr",
  };
}

export function perSecond(work: () => unknown, ms = 300): number {
  for (let i = 0; i < 2_000; i++) work();
  const start = performance.now();
  let n = 0;
  while (performance.now() - start < ms) {
    for (let i = 0; i < 200; i++) work();
    n += 200;
  }
  return (n * 1_000) / (performance.now() - start);
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const facts = {
    one: factsFor(policyOf(1)),
    hundred: factsFor(policyOf(100)),
    many: factsFor(policyOf(10_000)),
    thresholds: factsFor(thresholds(5_000)),
  };
  const peers = await peerEngines();
  const speeds = await alternate(rounds, {
    one: () => perSecond(() => decideCall(facts.one)),
    hundred: () => perSecond(() => decideCall(facts.hundred)),
    many: () => perSecond(() => decideCall(facts.many)),
    thresholds: () => perSecond(() => decideCall(facts.thresholds)),
    ...peers,
  });
  const rows: Row[] = [
    {
      suite: "decide",
      what: "100 rules: time against 1 rule",
      value: ratio(speeds.one, speeds.hundred),
      unit: "x",
      goal: { at_most: 3 },
    },
    {
      suite: "decide",
      what: "10,000 rules: time against 100",
      value: ratio(speeds.hundred, speeds.many),
      unit: "x",
      goal: { at_most: 2 },
    },
    {
      suite: "decide",
      what: "5,000 conditional rules on the tool that is called: time against 1",
      value: ratio(speeds.one, speeds.thresholds),
      unit: "x",
      goal: { at_most: 3 },
    },
    {
      suite: "decide",
      what: "decisions a second, 100 rules",
      value: speeds.hundred.reduce((a, b) => a + b) / rounds,
      goal: null,
    },
  ];
  for (const name of Object.keys(peers)) {
    const peer = (speeds as Record<string, number[]>)[name]!;
    rows.push({
      suite: "decide",
      what: `100 rules: speed against ${name}`,
      value: ratio(speeds.hundred, peer),
      unit: "x",
      goal: { at_least: 1 },
    });
  }
  return rows;
}

/** The same hundred rules in other engines, where they are installed. */
export async function peerEngines(): Promise<Record<string, () => Promise<number> | number>> {
  const engines: Record<string, () => Promise<number> | number> = {};
  try {
    const { Engine } = await import("json-rules-engine");
    const engine = new Engine([], { allowUndefinedFacts: true });
    for (let i = 0; i < 100; i++) {
      engine.addRule({
        conditions: {
          all: [
            { fact: "tool", operator: "equal", value: i === 0 ? "payments.refund" : `tool${i}.x` },
            { fact: "amount", operator: "greaterThan", value: 500 },
          ],
        },
        event: { type: "deny" },
      });
    }
    engines["json-rules-engine"] = async () => {
      const start = performance.now();
      let n = 0;
      while (performance.now() - start < 300) {
        await engine.run({ tool: "payments.refund", amount: 20 });
        n++;
      }
      return (n * 1_000) / (performance.now() - start);
    };
  } catch {
    console.error("json-rules-engine is not installed; not compared");
  }
  try {
    const cedar = await import("@cedar-policy/cedar-wasm/nodejs");
    const policies = Array.from(
      { length: 100 },
      (_, i) =>
        `forbid(principal, action == Action::"${i === 0 ? "payments.refund" : `tool${i}.x`}", resource) when { context.amount > 500 };`,
    );
    const staticPolicies = `permit(principal, action, resource);\n${policies.join("\n")}`;
    // Parsed once, as ours is compiled once.
    cedar.preparsePolicySet("bench", { staticPolicies });
    const request = {
      principal: { type: "User", id: "bot" },
      action: { type: "Action", id: "payments.refund" },
      resource: { type: "Tool", id: "t" },
      context: { amount: 20 },
      preparsedPolicySetId: "bench",
      entities: [],
    };
    engines["@cedar-policy/cedar-wasm"] = () => {
      const start = performance.now();
      let n = 0;
      while (performance.now() - start < 300) {
        cedar.statefulIsAuthorized(request as never);
        n++;
      }
      return (n * 1_000) / (performance.now() - start);
    };
  } catch {
    console.error("@cedar-policy/cedar-wasm is not installed; not compared");
  }
  return engines;
}
