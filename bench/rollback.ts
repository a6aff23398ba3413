/** Planning a rollback: ten times the steps may cost eleven times the time, no more. */
import type { StepDoc } from "../src/govern/runs/run.ts";
import { planRollback } from "../src/rollback/plan/plan.ts";
import { readManifests } from "../src/rules/manifest/load.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, type Row, ratio } from "./report.ts";

const set = readManifests([
  {
    file: "m",
    text: `
- {tool: open, effect: idempotent, permission: p}
- {tool: make, effect: compensable, permission: p, requires: [open], compensation: {tool: unmake, args: {id: $result.id}}}
`,
  },
]);

function steps(n: number): StepDoc[] {
  return Array.from({ length: n }, (_, i) => {
    const tool = i % 10 === 0 ? "open" : "make";
    return {
      run_id: "r",
      step: i,
      tool,
      reason: "r",
      effect: set.active(tool)!.effect,
      status: "succeeded",
      depends_on: i % 7 === 3 ? [i - 1] : [],
      requires: set.active(tool)!.requires,
      compensation_tool: tool === "make" ? "unmake" : null,
      handle: "h",
      error: null,
      manifest_version: "1",
      manifest_hash: set.hashOf(set.active(tool)!),
      risk_score: 0,
      args_hash: "",
      result_hash: null,
      intended_ms: 0,
      finished_ms: 0,
      intended_seq: 2 * i,
      succeeded_seq: 2 * i + 1,
      compensated_seq: null,
      idempotency: null,
    };
  });
}

const ROUNDS = 40;

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const manifests = new Map(set.all.map((manifest) => [set.hashOf(manifest), manifest]));
  /** Time of one plan, over `runs` different runs in turn: both sides then work on as many steps, none of them warm. */
  const measure = (runs: number, length: number) => {
    const all = Array.from({ length: runs }, () => {
      const made = steps(length);
      return { made, payloads: made.map(({ step }) => ({ refs: { "$result.id": step } })) };
    });
    return () => {
      // Processor time: planning waits for nothing, and others on the machine are not its doing.
      const start = process.cpuUsage();
      for (let i = 0; i < ROUNDS; i++) {
        for (const { made, payloads } of all) planRollback({ run_id: "r" }, made, manifests, payloads);
      }
      return process.cpuUsage(start).user / (ROUNDS * runs);
    };
  };
  const small = measure(10, 1_000);
  const large = measure(1, 10_000);
  small();
  large();
  const times = await alternate(rounds, { small, large });
  return [
    {
      suite: "rollback",
      what: "planning 10,000 steps: time against 1,000",
      value: ratio(times.large, times.small),
      unit: "x",
      goal: { at_most: 11 },
    },
  ];
}
