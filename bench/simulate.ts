/**
 * How fast history goes through a simulation, against the bare decision function on the same calls and policy;
 * and the longest pause of the process that serves decisions while it simulates 100,000 calls.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Worker } from "node:worker_threads";
import { capturedPages } from "../src/capture/captured-calls.ts";
import { decideCall } from "../src/govern/decide/decide.ts";
import type { DecisionFacts } from "../src/govern/decide/facts.ts";
import { policyCall } from "../src/govern/decide/load-facts.ts";
import { scopeSeal } from "../src/govern/runs/run.ts";
import { doJob } from "../src/operations/worker/execute.ts";
import { SandboxHost } from "../src/operations/worker/host.ts";
import type { SandboxJob } from "../src/operations/worker/job.ts";
import { readManifests } from "../src/rules/manifest/load.ts";
import { compilePolicy } from "../src/rules/policy/compile.ts";
import { loadPolicy } from "../src/rules/policy/load.ts";
import type { HistoricCall } from "../src/simulate/recorded-call.ts";
import type { SimulationReport } from "../src/simulate/simulate.ts";
import { MemoryStore } from "../src/store/memory/store.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row, ratio } from "./report.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm}
- {tool: crm.create, effect: compensable, permission: crm, compensation: {tool: crm.delete, args: {id: $result.id}}}
- {tool: payments.refund, effect: irreversible, permission: pay, risk: {data_class: financial}}
`;
const TOOLS = ["crm.get", "crm.create", "payments.refund"];
const POLICY = `
version: 1
rules:
${Array.from({ length: 100 }, (_, i) => `  - {id: r${i}, match: {tool: "${i === 0 ? "payments" : `tool${i}`}.*"}, when: [{path: $args.amount, op: gt, value: 500}], action: deny}`).join("\n")}
limits: [{id: rate, match: {tool: "crm.*"}, max: 100000, per: run, window: 1h}]
risk: {deny_at: 100}
`;
const CALLS_PER_RUN = 20;
const HISTORY = 100_000;

const manifests = readManifests([{ file: "m", text: MANIFESTS }]);
const policy = compilePolicy(loadPolicy(POLICY, "policy"));

function pastCall(n: number, now: number): HistoricCall {
  const tool = TOOLS[n % TOOLS.length]!;
  return {
    run_id: `run_${Math.floor(n / CALLS_PER_RUN)}`,
    step: n % CALLS_PER_RUN,
    tool,
    actor: "bot",
    tenant: null,
    environment: "prod",
    args: { amount: n % 400, to: `acct-${n}`, note: "duplicate charge" },
    result: { id: n },
    has_result: true,
    decision: "allow",
    reasons: [],
    outcome: "succeeded",
    manifest_version: "1",
    risk_score: 0,
    captured_ms: now - HISTORY + n,
    expires_ms: now + 86_400_000,
    redacted: false,
    verdict: "allow",
    depends_on: [],
    mode: "enforce",
    approval_used: false,
    finished_ms: now - HISTORY + n,
    logical_call: null,
  };
}

function jobAt(now_ms: number): SandboxJob {
  const rules = { manifests: manifests.all, active: policy.doc, policy: null };
  return { ...rules, task: { kind: "simulate" }, now_ms, environment: "prod", storeKey: "bench" };
}

/** With every fact loaded and nothing stored: the least cost of evaluating a call. */
function bareDecisions(calls: readonly HistoricCall[]): number {
  const facts = { run_id: "r", actor: "bot", mode: "enforce" as const, tenant: null };
  const permissions = [...manifests.permissions];
  const run = {
    ...facts,
    principal: "p",
    environment: "prod",
    reason: null,
    scope: { permissions, seal: scopeSeal({ ...facts, permissions }) },
    ...{ created_ms: 0, salt: "s", next_step: 0, next_run_seq: 0 },
    ...{ open: 0, uncertain: 0, compensation_failed: 0, awaiting: 0, open_approvals: 0 },
  };
  const all = calls.map(({ tool, args }): DecisionFacts => {
    const manifest = manifests.active(tool)!;
    const call = policyCall(run, tool, args, manifest);
    return {
      ...{ now: 0, run, tool, args, manifest, policy, call, halts: [], kill_switch: null, repeat_of: null },
      ...{ missing_prerequisites: [], fallen_dependencies: [], counters: new Map(), request: null },
      caller: { max_permissions: null, allow_observe: false },
      fresh_approval_id: "apr",
      open_requests: 0,
    };
  });
  const start = performance.now();
  for (const one of all) decideCall(one);
  return (all.length * 1_000) / (performance.now() - start);
}

async function simulated(calls: readonly HistoricCall[], now: number): Promise<number> {
  const start = performance.now();
  const report = (await doJob(jobAt(now), inPages(calls))) as SimulationReport;
  if (report.summary.unchanged !== calls.length) throw new Error("the simulation changed something");
  return (calls.length * 1_000) / (performance.now() - start);
}

async function* inPages(calls: readonly HistoricCall[]): AsyncGenerator<readonly HistoricCall[]> {
  for (let i = 0; i < calls.length; i += 200) yield calls.slice(i, i + 200);
}

async function longestStall(work: () => Promise<void>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await work();
  delay.disable();
  return delay.max / 1e6;
}

/** The machine's own effect on a process that serves nobody, next to a thread that only spins. */
function idleStall(ms: number): Promise<number> {
  return longestStall(async () => {
    const spinning = new Worker(`const end = Date.now() + ${ms}; while (Date.now() < end);`, { eval: true });
    await new Promise((resolve) => spinning.once("exit", resolve));
  });
}

/** The longest pause of the event loop, in milliseconds, and the calls per second. */
async function besideServing(now: number): Promise<{ stall_ms: number; per_second: number }> {
  const store = new MemoryStore();
  // A listing of the memory store reads every row; real stores have an index, which this replaces.
  const rows = Array.from({ length: HISTORY }, (_, n) => ({
    key: String(n),
    sort: n,
    doc: pastCall(n, now),
  }));
  store.list = async (_table, { after, limit }) => {
    const from = after === undefined ? 0 : after.sort + 1;
    return rows.slice(from, from + limit) as never;
  };
  const start = performance.now();
  let text = "";
  const stall_ms = await longestStall(async () => {
    const never = new AbortController().signal;
    text = await new SandboxHost().run(jobAt(now), capturedPages(store, {}, now), never);
  });
  const { summary } = JSON.parse(text) as SimulationReport;
  if (summary.calls !== HISTORY) throw new Error(`only ${summary.calls} calls were simulated`);
  return { stall_ms, per_second: (HISTORY * 1_000) / (performance.now() - start) };
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const now = Date.now();
  const calls = Array.from({ length: 10_000 }, (_, n) => pastCall(n, now));
  const speeds = await alternate(rounds, {
    decide: () => bareDecisions(calls),
    simulate: () => simulated(calls, now),
  });
  const beside = await besideServing(now);
  const idle_ms = await idleStall((HISTORY * 1_000) / beside.per_second);
  const suite = "simulate";
  return [
    {
      suite,
      what: "speed against the bare decision",
      value: ratio(speeds.simulate, speeds.decide),
      unit: "x",
      goal: null,
    },
    { suite, what: "calls a second", value: median(speeds.simulate), goal: null },
    { suite, what: "100,000 calls in a thread: calls a second", value: beside.per_second, goal: null },
    { suite, what: "longest stall of the server meanwhile", value: beside.stall_ms, unit: " ms", goal: null },
    { suite, what: "longest stall beside a thread that spins", value: idle_ms, unit: " ms", goal: null },
    {
      suite,
      what: "stall that the simulation adds",
      value: Math.max(0, beside.stall_ms - idle_ms),
      unit: " ms",
      goal: { at_most: 50 },
    },
  ];
}
