/** Doing a sandbox job, wherever that is: in the thread, in a test, in a benchmark. */
import type { Rules } from "../../engine/core.ts";
import { type Env, systemEnv } from "../../kernel/env.ts";
import { notFound } from "../../kernel/errors.ts";
import { manifestSet } from "../../model/manifest/set.ts";
import { compilePolicy, type Policy } from "../../model/policy/compile.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import { type ReplayReport, replayCalls } from "../../sandbox/replay.ts";
import { type LiveRun, Sandbox, type SandboxStore } from "../../sandbox/sandbox.ts";
import { judgeAgain, type SimulationReport } from "../../sandbox/simulate.ts";
import { rankPlans, type SpeculationReport } from "../../sandbox/speculate.ts";
import { openStore } from "../../store/open.ts";
import type { Job } from "./job.ts";

type JobReport = SimulationReport | ReplayReport | SpeculationReport;
type History = AsyncIterable<readonly PastCall[]>;

export async function doJob(job: Job, history: History): Promise<JobReport> {
  const manifests = manifestSet(job.manifests);
  const active = compilePolicy(job.active);
  const tried = job.policy === null ? active : compilePolicy(loadPolicy(job.policy.text, job.policy.file));
  const fresh = async (policy: Policy) => openSandbox({ manifests, policy }, job);
  const { task } = job;
  switch (task.kind) {
    case "simulate":
      return judgeAgain(await fresh(tried), history);
    case "replay": {
      const calls: PastCall[] = [];
      for await (const page of history) calls.push(...page);
      if (calls.length === 0) throw notFound(`run ${task.run_id} has no captured calls`);
      const [baseline, variant] = [await fresh(active), await fresh(tried)];
      return replayCalls({ run_id: task.run_id, calls, changes: task.changes, baseline, variant });
    }
    case "speculate": {
      const { actor, plans } = task;
      const { environment, now_ms } = job;
      return rankPlans(plans, { actor, environment, now_ms, sandbox: () => fresh(tried) });
    }
  }
}

type SandboxFacts = Pick<Job, "now_ms" | "environment" | "storeKey" | "held" | "drills"> & {
  live?: LiveRun;
};

/** A sandbox whose clock starts at `now_ms`, on a memory store of its own. */
export async function openSandbox(
  rules: Rules,
  { now_ms, environment, storeKey, held, drills = [], live }: SandboxFacts,
): Promise<Sandbox> {
  const env: Env = { ...systemEnv, now: () => now_ms };
  const store = await memoryStore();
  store.transactSync({
    run(tx) {
      for (const drill of drills) tx.put("drills", drill.tool, drill);
    },
  });
  return new Sandbox({ store, rules, env, storeKey, environment, held, live });
}

async function memoryStore(): Promise<SandboxStore> {
  const settings = { store: "memory", data: "", database_url: null, warn: () => {} } as const;
  return (await openStore(settings)) as SandboxStore;
}
