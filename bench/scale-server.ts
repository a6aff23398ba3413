/** One of the servers that `scale` measures: an engine on PostgreSQL with agents that ask as fast as they are answered. */
import type { EngineCore } from "../src/govern/core.ts";
import { intentUnit } from "../src/govern/decide/intent.ts";
import type { CallerPrincipal } from "../src/govern/roles.ts";
import { newRun, openRunUnit } from "../src/govern/runs/open-run.ts";
import { systemEnv } from "../src/kernel/env.ts";
import { batchStatsOf, openPostgresStore } from "../src/store/postgres/store.ts";
import type { BatchStats } from "../src/store/postgres/writer.ts";
import { principal, testEngine } from "../test/support/engine.ts";
import { AGENTS, type ScaleFigures, type ScaleWork } from "./scale-work.ts";

/** Asked before anything is measured: code that was just loaded is slow, and the more so the fewer calls it is spread over. */
const WARM_UP = 4_000;
const OPENED_AT_ONCE = 256;
const MANIFESTS = "- {tool: crm.get, effect: read, permission: crm.read}";
const CONTESTED =
  "version: 1\nlimits:\n  - {id: all, match: {tool: crm.get}, per: global, max: 1000000, window: 1d}\n";

async function open(url: string, policy: string): Promise<EngineCore> {
  const store = await openPostgresStore(url, () => {});
  return { ...testEngine({ manifests: MANIFESTS, policy }).core, env: systemEnv, store };
}

/** An agent of this tenant with its own run; each call of the returned function asks once. */
async function agent(core: EngineCore, tenant: string | null): Promise<() => Promise<void>> {
  const who: CallerPrincipal = { ...principal("bench"), tenant };
  const run = newRun(core, who, { permissions: ["crm.read"] });
  await core.store.transact(openRunUnit(run));
  const { run_id, principal: owner, actor, environment, salt } = run;
  const known = { run_id, principal: owner, actor, tenant, environment, salt };
  return async () => {
    const input = { tool: "crm.get", args: { id: 1 }, reason: "measuring", depends_on: [] };
    await core.store.transact(intentUnit(core, who, run_id, input, known));
  };
}

interface Loaded {
  core: EngineCore;
  asks: (() => Promise<void>)[];
  neighbour: (() => Promise<void>) | undefined;
}

/** A server whose agents have their runs, and have asked for a while. */
async function load(url: string, work: ScaleWork): Promise<Loaded> {
  const core = await open(url, work.kind === "contested" ? CONTESTED : "version: 1");
  const flooding = work.kind === "neighbour" ? work.flood : AGENTS;
  const asks: (() => Promise<void>)[] = [];
  // Some at a time: thousands at once would run out of their time before anything is measured.
  while (asks.length < flooding) {
    const more = Math.min(OPENED_AT_ONCE, flooding - asks.length);
    asks.push(...(await Promise.all(Array.from({ length: more }, () => agent(core, "flood")))));
  }
  const neighbour = work.kind === "neighbour" ? await agent(core, "neighbour") : undefined;
  const warm = [...asks.slice(0, AGENTS), ...(neighbour === undefined ? [] : [neighbour])];
  for (let asked = 0; asked < WARM_UP; asked += AGENTS) await Promise.allSettled(warm.map((ask) => ask()));
  return { core, asks, neighbour };
}

async function measure({ core, asks, neighbour }: Loaded, seconds: number): Promise<ScaleFigures> {
  const until = (end: number, ask: () => Promise<void>, done: (ms: number) => void) =>
    (async () => {
      for (let now = performance.now(); now < end; now = performance.now()) {
        // Who is refused asks again, and has waited.
        const answered = await ask().then(
          () => true,
          () => false,
        );
        if (answered || done === waited) done(performance.now() - now);
      }
    })();
  let decided = 0;
  const waits: number[] = [];
  const waited = (ms: number) => waits.push(ms);
  const before = { ...batchStatsOf(core.store)! };
  const cpu = process.cpuUsage();
  const began = performance.now();
  const end = began + seconds * 1_000;
  const all = asks.map((ask) => until(end, ask, () => decided++));
  if (neighbour !== undefined) all.push(until(end, neighbour, waited));
  await Promise.allSettled(all);
  const elapsed_ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  const after = batchStatsOf(core.store)!;
  const spent = Object.fromEntries(
    Object.entries(after).map(([name, value]) => [name, value - before[name as keyof BatchStats]]),
  ) as unknown as BatchStats;
  waits.sort((a, b) => a - b);
  return {
    decided,
    elapsed_ms,
    cpu_us: user + system,
    work: spent,
    p99_ms: waits[Math.floor(waits.length * 0.99)] ?? 0,
  };
}

process.once("message", async (message) => {
  const { url, work } = message as { url: string; work: ScaleWork };
  const loaded = await load(url, work);
  process.on("message", async () => process.send!(await measure(loaded, work.seconds)));
  process.on("disconnect", () => process.exit(0));
  process.send!("ready");
});
