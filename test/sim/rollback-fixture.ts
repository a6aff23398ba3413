/** A run to roll back: the real engine on the memory store, tools of every kind, and a world that is undone. */
import type { EngineCore } from "../../src/govern/core.ts";
import type { OutcomeStatus, StepDoc } from "../../src/govern/runs/run.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import type { CompensationCall, ReadRequest } from "../../src/rollback/ports.ts";
import { executeRollback, type RollbackOptions } from "../../src/rollback/undo/execute.ts";
import { principal, testEngine } from "../support/engine.ts";
import type { FakeEnv } from "../support/env.ts";

/** Everything a rollback may meet; `permission: p` throughout, so that scope is out of the way. */
export const TOOLS = `
- {tool: db.create, effect: compensable, permission: p,
   compensation: {tool: db.delete, args: {id: $result.id, name: $args.name}, kind: inverse, residue: [an id was used up]}}
- {tool: db.fill, effect: compensable, permission: p, requires: [db.create],
   compensation: {tool: db.empty, args: {id: $result.id}}}
- {tool: db.read, effect: read, permission: p}
- {tool: db.peek, effect: read, permission: p, requires: [db.create]}
- {tool: db.touch, effect: idempotent, permission: p}
- {tool: db.flag, effect: idempotent, permission: p, compensation: {tool: db.unflag, args: {id: $args.id}}}
- {tool: mail.send, effect: irreversible, permission: p}
- {tool: mail.about, effect: irreversible, permission: p, requires: [db.create]}
- {tool: mail.after_peek, effect: irreversible, permission: p, requires: [db.peek]}
- {tool: pay.charge, effect: compensable, permission: p,
   compensation: {tool: pay.refund, args: {id: $result.id}, requires_approval: true}}
- {tool: crm.add, effect: reversible, permission: p,
   compensation: {tool: crm.remove, args: {id: $result.id}, kind: inverse},
   verification: {tool: crm.get, args: {id: $result.id}, expect: {deleted: true}, retries: 2, backoff_ms: 100}}
- {tool: crm.note, effect: reversible, permission: p,
   compensation: {tool: crm.unnote, args: {id: $result.id}},
   verification: {tool: crm.get, args: {id: $result.note_id}, expect: {deleted: true}}}
- {tool: once.only, effect: compensable, permission: p, idempotency: $args.key,
   compensation: {tool: once.undo, args: {key: $args.key}}}
`;

export const OPERATOR = { id: "key:olga", name: "olga" };

export interface Act {
  args?: JsonValue;
  result?: JsonValue;
  depends_on?: number[];
  /** `intended` leaves the outcome open. */
  status?: OutcomeStatus | "intended";
}

export type Bench = ReturnType<typeof rollbackBench>;

export function rollbackBench(options: { tools?: string; policy?: string } = {}) {
  const recorded: string[] = [];
  const requested: string[] = [];
  const engine = testEngine({
    manifests: options.tools ?? TOOLS,
    policy: options.policy,
    listeners: {
      recorded: (records) => recorded.push(...records.map(({ event }) => event)),
      approvalRequested: ({ id }) => requested.push(id),
    },
  });
  const waits: number[] = [];
  const core: EngineCore = {
    ...engine.core,
    env: restless(engine.env, waits),
    redact: (text) => text.replaceAll("hunter2", "[secret]"),
  };
  const agent = principal("bot");
  const world = new World();
  return {
    ...engine,
    core,
    agent,
    world,
    recorded,
    requested,
    waits,
    operator: OPERATOR,
    async openRun(run_id = "r1", mode: "enforce" | "observe" = "enforce") {
      await engine.open(agent, { run_id, permissions: ["p"], mode });
    },
    async act(tool: string, act: Act = {}, run_id = "r1"): Promise<number> {
      const args = act.args ?? { name: "n" };
      const decision = await engine.intent(agent, run_id, tool, args, { depends_on: act.depends_on ?? [] });
      if (decision.decision === "block") throw new Error(decision.reasons.join("; "));
      const status = act.status ?? "succeeded";
      const result = act.result === undefined ? { id: `id-${decision.step}` } : act.result;
      if (status !== "intended") {
        await engine.outcome(
          agent,
          run_id,
          decision.step,
          status === "succeeded" ? { status, result } : { status },
        );
      }
      return decision.step;
    },
    rollback(more: Partial<RollbackOptions> = {}, run_id = "r1", by: EngineCore = core) {
      return executeRollback(by, run_id, {
        actor: OPERATOR.name,
        compensator: world.compensator,
        backoff_ms: 100,
        ...more,
      });
    },
    async step(n: number, run_id = "r1"): Promise<StepDoc> {
      return (await engine.store.get("steps", `${run_id}/${n}`))!;
    },
    async run(run_id = "r1") {
      return (await engine.store.get("runs", run_id))!;
    },
    /** The run's events from the first undo on, with their step: `compensating 2`. */
    async undoTrail(run_id = "r1"): Promise<string[]> {
      const trail = await engine.trail(run_id);
      const undo = /^(compensat|verif|unverif|approv|denied)/;
      return trail.filter(({ event }) => undo.test(event)).map(({ event, step }) => `${event} ${step}`);
    },
  };
}

/** The world that the compensations act on: it remembers every call, and fails where the test orders it. */
export class World {
  readonly calls: CompensationCall[] = [];
  readonly reads: ReadRequest[] = [];
  readonly undone = new Set<string>();
  running = 0;
  most = 0;
  /** An error for a call, or undefined where it goes well. */
  fails: (call: CompensationCall, nth: number) => string | undefined = () => undefined;
  shows: (request: ReadRequest, nth: number) => JsonValue | Error = () => ({ deleted: true });

  readonly compensator = async (call: CompensationCall): Promise<void> => {
    this.running++;
    this.most = Math.max(this.most, this.running);
    await Promise.resolve();
    this.running--;
    this.calls.push(call);
    const problem = this.fails(call, this.calls.filter(({ step }) => step === call.step).length);
    if (problem !== undefined) throw new Error(problem);
    this.undone.add(call.idempotency_key);
  };

  readonly reader = async (request: ReadRequest): Promise<JsonValue> => {
    this.reads.push(request);
    const shown = this.shows(request, this.reads.length);
    if (shown instanceof Error) throw shown;
    return shown;
  };

  get order(): number[] {
    return this.calls.map(({ step }) => step);
  }
}

/** Waits between attempts pass at once and are noted; the heartbeat sleeps until the test moves time. */
export function restless(env: FakeEnv, waits: number[]): FakeEnv {
  return {
    ...env,
    get sleepers() {
      return env.sleepers;
    },
    sleep(ms, signal) {
      if (ms === SERVICE_LIMITS.lease_heartbeat_ms) return env.sleep(ms, signal);
      if (signal?.aborted) return Promise.reject(signal.reason);
      waits.push(ms);
      env.setNow(env.now() + ms);
      return Promise.resolve();
    },
  };
}
