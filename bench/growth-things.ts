/**
 * The cost of an intent with many of each object that a user can have many of, against the same store before; and the cost
 * per second of an idle server with many open requests. On the files store, where no network hides anything.
 */
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { delegateUnit } from "../src/govern/approvals/delegations.ts";
import { HALTS_KEY } from "../src/govern/document-keys.ts";
import { giveGrantUnit } from "../src/govern/grants/give.ts";
import { proposeUnit } from "../src/govern/plans/propose.ts";
import type { CallerPrincipal } from "../src/govern/roles.ts";
import type { ServiceApp } from "../src/operations/app.ts";
import { runWaitsOf } from "../src/operations/approvals/run-watcher.ts";
import { ExpiryJob } from "../src/operations/background/expire.ts";
import { placeHoldUnit } from "../src/retention/holds.ts";
import { BOT, cost, intent, newOne, open } from "./growth.ts";
import { median, type Row } from "./report.ts";

const MANY = 10_000;
const SOME = 1_000;
const HOUR = 3_600_000;
const ANN: CallerPrincipal = { ...BOT, id: "key:ann", name: "ann", roles: ["approver", "admin"] };
const POLICY =
  "version: 1\nrules: [{id: ask, match: {tool: crm.ask}, action: require_approval, reason: a person decides}]\n";
const call = (tool: string) => ({ tool, args: { id: 1 }, reason: "bench", depends_on: [] });

const polls = new AbortController();
setMaxListeners(0, polls.signal);

type Grow = (app: ServiceApp) => Promise<unknown>;

/** So many at a time that their commits share a sync. */
async function times(n: number, one: (i: number) => Promise<unknown>): Promise<void> {
  for (let done = 0; done < n; done += 250)
    await Promise.all(Array.from({ length: 250 }, (_, i) => one(done + i)));
}

const THINGS: Record<string, Grow> = {
  [`${MANY} halts of others`]: ({ core }) =>
    core.store.transact({
      run(tx) {
        const scope = { tool: null, tenant: null, environment: null };
        const active = Array.from({ length: MANY }, (_, i) => ({
          id: `halt_${i}`,
          reason: "bench",
          scope: { ...scope, actor: `actor-${i}` },
          by: "ann",
          created_ms: 0,
        }));
        tx.put("halts", HALTS_KEY, { active });
      },
    }),
  [`${MANY} waiting polls`]: async (app) => {
    for (let i = 0; i < MANY; i++) void runWaitsOf(app.core.store).wait(`run_${i}`, polls.signal).woken;
  },
  [`${MANY} delegations`]: ({ core }) =>
    times(MANY, (i) => {
      const lent = { to: `p${i}`, tools: "*", reason: "bench", expires_ms: core.env.now() + HOUR };
      return core.store.transact(delegateUnit(core, ANN, lent));
    }),
  [`${SOME} grants to others`]: ({ core }) =>
    times(SOME, (i) => {
      const match = { tool: "crm.ask", actor: `actor-${i}`, tenant: null, environment: null };
      const terms = { match, rules: ["ask"], when: [], max_uses: 10, budget: null, irreversible: false };
      const giver = { principal: ANN, at_the_data: true, delegations: [], today: () => ANN };
      const input = { ...terms, reason: "bench", expires_ms: core.env.now() + HOUR };
      return core.store.transact(giveGrantUnit(core, giver as never, input as never));
    }),
  [`${SOME} legal holds`]: ({ core }) =>
    times(SOME, (i) =>
      core.store.transact(
        placeHoldUnit(core, "ann", { scope: { actor: `actor-${i}` }, reason: "a bench holds it" }),
      ),
    ),
  [`${SOME} plans of other runs`]: (app) =>
    times(SOME, async () => {
      const { core } = app;
      const { run_id } = await newOne(app);
      const plan = { reason: "bench", calls: [], fully_reversible: true, irreversible: [], residue: [] };
      return core.store.transact(proposeUnit(core, BOT, run_id, plan));
    }),
  [`${MANY} open requests`]: async (app) => {
    const run = await newOne(app);
    await times(MANY, (i) => intent(app, run, { ...call("crm.ask"), args: { id: i } }));
  },
};

/** Milliseconds of one pass over time-dependent state, after the first. */
async function looking(app: ServiceApp): Promise<number> {
  const sweep = new ExpiryJob(app);
  await sweep.approvals();
  const took: number[] = [];
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    await sweep.approvals();
    took.push(performance.now() - start);
  }
  return median(took);
}

export async function things(rounds: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const rows: Row[] = [];
  const add = (what: string, value: number, unit: string, at_most: number) =>
    rows.push({ suite: "growth", what, value, unit, goal: { at_most } });
  const write = (tools: number) => {
    const more = Array.from({ length: tools }, (_, i) => `- {tool: tool${i}, effect: read, permission: p}\n`);
    const own = ["get", "ask"].map((name) => `- {tool: crm.${name}, effect: read, permission: crm.read}\n`);
    writeFileSync(join(folder, "manifests.yaml"), [...own, ...more].join(""));
  };
  try {
    writeFileSync(join(folder, "policy.yaml"), POLICY);
    write(0);
    let app = await open(folder, "files", null, join(folder, "policy.yaml"));
    const small = await cost(app, await newOne(app), rounds);
    for (const [name, grow] of Object.entries(THINGS)) {
      await grow(app);
      add(`files: intent beside ${name}`, (await cost(app, await newOne(app), rounds)) / small, "x", 1.2);
    }
    add(`files: a second's look with ${MANY} open requests`, await looking(app), " ms", 5);
    polls.abort();
    await app.close();
    write(MANY);
    app = await open(folder, "files", null, join(folder, "policy.yaml"));
    add(
      `files: intent beside all of these and ${MANY} manifests`,
      (await cost(app, await newOne(app), rounds)) / small,
      "x",
      1.2,
    );
    await app.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
