/** Executes a sandbox job in any environment: a thread, a test or a benchmark. */
import type { ActiveRules } from "../../govern/core.ts";
import { type RuntimeEnv, systemEnv } from "../../kernel/env.ts";
import { notFoundError } from "../../kernel/errors.ts";
import { manifestSet } from "../../rules/manifest/set.ts";
import { type CompiledPolicy, compilePolicy } from "../../rules/policy/compile.ts";
import { loadPolicy } from "../../rules/policy/load.ts";
import type { HistoricCall } from "../../simulate/recorded-call.ts";
import { type ReplayReport, replayCalls } from "../../simulate/replay.ts";
import { type LiveRun, SandboxEngine, type SandboxStore } from "../../simulate/sandbox.ts";
import { reevaluateCalls, type SimulationReport } from "../../simulate/simulate.ts";
import { rankPlans, type SpeculationReport } from "../../simulate/speculate.ts";
import { openStore } from "../../store/open.ts";
import type { SandboxJob } from "./job.ts";

type JobReport = SimulationReport | ReplayReport | SpeculationReport;
type History = AsyncIterable<readonly HistoricCall[]>;

export async function doJob(job: SandboxJob, history: History): Promise<JobReport> {
  const manifests = manifestSet(job.manifests);
  const active = compilePolicy(job.active);
  const tried = job.policy === null ? active : compilePolicy(loadPolicy(job.policy.text, job.policy.file));
  const fresh = async (policy: CompiledPolicy) => openSandbox({ manifests, policy }, job);
  const { task } = job;
  switch (task.kind) {
    case "simulate":
      return reevaluateCalls(await fresh(tried), history);
    case "replay": {
      const calls: HistoricCall[] = [];
      for await (const page of history) calls.push(...page);
      if (calls.length === 0) throw notFoundError(`run ${task.run_id} has no captured calls`);
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

type SandboxFacts = Pick<SandboxJob, "now_ms" | "environment" | "storeKey" | "held" | "drills"> & {
  live?: LiveRun;
};

/** A sandbox with its own memory store, whose clock starts at `now_ms`. */
export async function openSandbox(
  rules: ActiveRules,
  { now_ms, environment, storeKey, held, drills = [], live }: SandboxFacts,
): Promise<SandboxEngine> {
  const env: RuntimeEnv = { ...systemEnv, now: () => now_ms };
  const store = await memoryStore();
  store.transactSync({
    run(tx) {
      for (const drill of drills) tx.put("drills", drill.tool, drill);
    },
  });
  return new SandboxEngine({ store, rules, env, storeKey, environment, held, live });
}

async function memoryStore(): Promise<SandboxStore> {
  const settings = { store: "memory", data: "", database_url: null, warn: () => {} } as const;
  return (await openStore(settings)) as SandboxStore;
}
