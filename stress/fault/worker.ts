/**
 * One process of the fault run: the real engine on a real store, asked over standard input, answering and
 * telling of every decision it was given on standard output. It is made to be killed.
 */
import { createInterface } from "node:readline";
import { decideUnit, expireOrEscalateUnit } from "../../src/govern/approvals/decide-request.ts";
import type { EngineCore } from "../../src/govern/core.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit, resolveUnit } from "../../src/govern/decide/outcome.ts";
import { giveGrantUnit, revokeGrantUnit } from "../../src/govern/grants/give.ts";
import { haltUnit, resumeUnit } from "../../src/govern/halts/halts.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { openStore } from "../../src/store/open.ts";
import { clock } from "./clock.ts";
import { AGENT, engineOn, GUARDED, PLAIN, person, TTL_MS } from "./engine.ts";
import type { Ack, Attempt, AttemptResult, Place, Seeded, WorkerOps } from "./protocol.ts";

const GIVER = person("giver", "admin");
let core: EngineCore;
let ahead_ms = 0;
let isLoading = false;
let lanes: Promise<void>[] = [];
let refused = 0;

// Standard output is a pipe, and written at once: text from before a SIGKILL arrives after it.
const say = (message: unknown): boolean => process.stdout.write(`${JSON.stringify(message)}\n`);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const ops: { [Op in keyof WorkerOps]: (input: never) => Promise<ReturnType<WorkerOps[Op]>> } = {
  async open(place: Place) {
    core = engineOn(await openStore({ ...place, warn: () => {} }), () => ahead_ms);
  },

  async load({ label, width }: { label: string; width: number }) {
    isLoading = true;
    lanes = Array.from({ length: width }, (_, lane) => work(`${label}-${lane}`));
  },

  async rest() {
    isLoading = false;
    await Promise.all(lanes);
    return refused;
  },

  async refusals() {
    return refused;
  },

  async insist() {
    const run_id = `insist-${process.pid}-${refused}`;
    for (;;) {
      const unit = openRunUnit(newRun(core, AGENT, { run_id, permissions: ["p"] }));
      const error = await core.store.transact(unit).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) throw new Error("a run was opened on a ledger that had been set back");
      if (error instanceof SvcError && error.code === "corrupt") return;
      await pause(20);
    }
  },

  async clock(ms: number) {
    ahead_ms = ms;
  },

  async seed({ label, count, call }: Parameters<WorkerOps["seed"]>[0]) {
    const names = Array.from({ length: count }, (_, i) => `${label}-${i}`);
    const tool = call === "waiting" ? GUARDED : PLAIN;
    const made = (run_id: string) => (call === "granted" ? seedGranted(run_id) : seed(run_id, tool));
    return Promise.all(names.map((name) => madeAnew(name, made)));
  },

  async attempt(attempts: Attempt[]) {
    return Promise.all(attempts.map(attempt));
  },

  async halt(reason: string) {
    const unit = haltUnit(core, "admin", { reason, tool: "crm.*" });
    const { halt, records } = await surely(() => core.store.transact(unit));
    return { id: halt.id, seq: records[0]!.seq, answered: clock() };
  },

  async resume(id: string) {
    const { records } = await surely(() => core.store.transact(resumeUnit(core, "admin", id)));
    return { seq: records[0]!.seq };
  },

  async close() {
    await core.store.close();
    process.stdin.destroy();
  },
};

/** An agent that asks, acts and reports until it is stopped, or dies. */
async function work(run_id: string): Promise<void> {
  await insist(() => core.store.transact(openRunUnit(newRun(core, AGENT, { run_id, permissions: ["p"] }))));
  const input = { tool: PLAIN, args: { run_id }, reason: "load", depends_on: [] };
  let next = 0;
  let unsure = 0;
  for (let i = 0; isLoading; i++) {
    const asked = clock();
    const result = await once(
      () => core.store.transact(intentUnit(core, AGENT, run_id, input)),
      () => unsure++,
    );
    if (result === undefined) continue;
    const { decision, records } = result;
    if (decision.decision !== "allow") {
      tell("blocked", records.at(-1)!, asked);
      await pause(1);
      continue;
    }
    tell("allow", records.at(-1)!, asked);
    // A step that nobody was given belongs to a refusal which said that it might.
    if (decision.step < next || decision.step > next + unsure)
      throw new Error(`${run_id}: step ${decision.step}, where ${next} to ${next + unsure} could be`);
    next = decision.step + 1;
    unsure = 0;
    if (i % 2 === 0) continue;
    const unit = outcomeUnit(core, AGENT, run_id, decision.step, { status: "succeeded" });
    const done = await once(() => core.store.transact(unit));
    if (done !== undefined) tell("outcome", done.records.at(-1)!, asked);
  }
}

function tell(kind: Ack["kind"], { seq, hash, run_id, step }: LedgerRecord, asked: number): void {
  say({ ack: { kind, seq, hash, run_id: run_id!, step: step ?? -1, asked } satisfies Ack });
}

/**
 * What a store refuses because it cannot write now is refused to the agent too, and asked again. Some refusals say
 * that the call may be found to have been recorded.
 */
async function once<T>(act: () => Promise<T>, mayBeFound: () => void = () => {}): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (!isRefusal(error)) throw error;
    refused++;
    if (/may have been recorded/.test(error.message)) mayBeFound();
    await pause(5);
    return undefined;
  }
}

const isRefusal = (error: unknown): error is SvcError =>
  error instanceof SvcError && error.code === "unavailable";

/** Asks again as long as the store is too busy to answer and says that nothing was recorded. */
async function surely<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isRefusal(error) || /may have been recorded/.test(error.message)) throw error;
      await pause(5);
    }
  }
}

/** What a busy store refused, and may hold in part, is made again under another name. */
async function madeAnew(name: string, make: (run_id: string) => Promise<Seeded>): Promise<Seeded> {
  for (let n = 0; ; n++) {
    try {
      return await make(n === 0 ? name : `${name}-${n}`);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await pause(5);
    }
  }
}

async function insist<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    const value = await once(act);
    if (value !== undefined) return value;
  }
}

async function seed(run_id: string, tool: string): Promise<Seeded> {
  await core.store.transact(openRunUnit(newRun(core, AGENT, { run_id, permissions: ["p"] })));
  const { opened } = await core.store.transact(intentUnit(core, AGENT, run_id, callOf(run_id, tool)));
  return { run_id, id: opened?.id ?? "" };
}

/** A grant for this run's call alone, good once. */
async function seedGranted(run_id: string): Promise<Seeded> {
  await core.store.transact(openRunUnit(newRun(core, AGENT, { run_id, permissions: ["p"] })));
  const giver = { principal: GIVER, at_the_data: true, delegations: [], today: () => null };
  const unit = giveGrantUnit(core, giver, {
    match: { tool: GUARDED, actor: AGENT.name, tenant: null, environment: null },
    rules: ["refunds"],
    when: [{ path: "$args.run_id", op: "eq", value: run_id }],
    max_uses: 1,
    budget: null,
    irreversible: true,
    reason: "contest",
    expires_ms: core.env.now() + TTL_MS,
  });
  const { grant } = await core.store.transact(unit);
  return { run_id, id: grant.id };
}

const callOf = (run_id: string, tool = GUARDED) => ({
  tool,
  args: { run_id },
  reason: "contest",
  depends_on: [],
});

async function attempt({ act, by, run_id, id }: Attempt): Promise<AttemptResult> {
  const asked = clock();
  const value = await surely(() => DOES[act](run_id, id, by)).catch((error: unknown) => {
    if (error instanceof SvcError && error.code === "conflict") return "lost";
    throw error;
  });
  return { act, run_id, won: value === "won", asked, answered: clock() };
}

const DOES: Record<Attempt["act"], (run_id: string, id: string, by: string) => Promise<"won" | "lost">> = {
  approve: (_, id, by) => decide("approve", id, by),
  deny: (_, id, by) => decide("deny", id, by),
  async expire(_, id) {
    const later = { ...core, env: { ...core.env, now: () => core.env.now() + TTL_MS } };
    return (await core.store.transact(expireOrEscalateUnit(later, id))) === null ? "lost" : "won";
  },
  async use(run_id) {
    const { decision } = await core.store.transact(intentUnit(core, AGENT, run_id, callOf(run_id)));
    return decision.decision === "allow" ? "won" : "lost";
  },
  async revoke(_, id) {
    await core.store.transact(revokeGrantUnit(core, GIVER, id));
    return "won";
  },
  async report(run_id) {
    await core.store.transact(outcomeUnit(core, AGENT, run_id, 0, { status: "succeeded" }));
    return "won";
  },
  async resolve(run_id, _, by) {
    await core.store.transact(resolveUnit(core, by, run_id, 0, { status: "failed", note: "looked" }));
    return "won";
  },
};

async function decide(decision: "approve" | "deny", id: string, by: string): Promise<"won"> {
  const unit = decideUnit(core, person(by, "approver"), id, { decision, note: null }, []);
  const { refused } = await core.store.transact(unit);
  if (refused !== null) throw refused;
  return "won";
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, op, input } = JSON.parse(line) as { id: number; op: keyof WorkerOps; input: never };
  try {
    say({ id, value: (await ops[op](input)) ?? null });
  } catch (error) {
    say({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
});
// Nobody is left to ask anything.
process.stdin.on("end", () => process.exit(0));
process.on("unhandledRejection", (error) => {
  say({ error: String(error) });
  process.exit(70);
});
say({ up: true });
