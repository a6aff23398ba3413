/**
 * A process that rolls runs back on a real store, and ends itself with SIGKILL after a chosen action, a
 * write or a call. Started by rollback-kill.test.ts.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { type EngineCore, silentListeners } from "../../src/govern/core.ts";
import { watchLeases } from "../../src/govern/lease.ts";
import type { StateStore, UnitOfWork } from "../../src/govern/port/store.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { openStore, type StoreKind } from "../../src/store/open.ts";

export interface ChildOrders {
  store: StoreKind;
  data: string;
  manifests: string;
  /** The file in which the world records its effects, one per line. */
  world: string;
  /** How far the time of day of this process is ahead. */
  ahead_ms: number;
  /** It has seen the leases of earlier processes for this long. */
  watched_ms: number;
  runs: string[];
  /** Which action is the last; 0 for none. */
  kill_at: number;
}

const orders = JSON.parse(readFileSync(0, "utf8")) as ChildOrders;
let actions = 0;

/** For a later process, the moment after an action is the moment before the next. */
async function action<T>(act: () => Promise<T>): Promise<T> {
  const value = await act();
  if (++actions === orders.kill_at) process.kill(process.pid, "SIGKILL");
  return value;
}

const inner = await openStore({ store: orders.store, data: orders.data, database_url: null, warn: () => {} });
const store = new Proxy(inner, {
  get(target, name) {
    if (name === "transact") return <T>(unit: UnitOfWork<T>) => action(() => target.transact(unit));
    const member = Reflect.get(target, name) as unknown;
    return typeof member === "function" ? member.bind(target) : member;
  },
}) as StateStore;
const rules = {
  manifests: readManifests([{ file: "manifests.yaml", text: orders.manifests }]),
  policy: compilePolicy({ version: 1 }),
};
let watched_ms = 0;
const core: EngineCore = {
  store,
  env: {
    ...systemEnv,
    now: () => Date.now() + orders.ahead_ms,
    elapsed: () => performance.now() + watched_ms,
  },
  rules: () => rules,
  environment: null,
  killSwitch: () => null,
  storeKey: "kill",
  leases: new SilenceWatch(),
  redact: (text) => text,
  listeners: silentListeners,
};

await watchLeases({ ...core, store: inner });
watched_ms = orders.watched_ms;
const reports: unknown[] = [];
for (const run_id of orders.runs) {
  const report = await executeRollback(core, run_id, {
    actor: "olga",
    compensator: (call) =>
      action(async () =>
        appendFileSync(orders.world, `${call.run_id} ${call.step} ${call.idempotency_key}\n`),
      ),
    reader: () => action(async () => ({ deleted: true })),
    approve_compensations: true,
  });
  reports.push(report);
}
await inner.close();
process.stdout.write(JSON.stringify({ actions, reports }));
