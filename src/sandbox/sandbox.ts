/**
 * The throwaway engine: the live engine's own units on a memory store of its own. Unless it is given a live run, its
 * runs hold every permission of the manifests, its counters start empty, and no halt reaches it. A call that it refuses
 * leaves nothing behind.
 */

import { type Core, type IntentCaller, type Rules, silentListeners } from "../engine/core.ts";
import { policyCall } from "../engine/gather.ts";
import { type HeldGrants, NO_GRANTS, putHeld } from "../engine/grants/hand.ts";
import { type IntentResult, intentUnit } from "../engine/intent.ts";
import { stepKey } from "../engine/keys.ts";
import { newRun, openRunUnit } from "../engine/open-run.ts";
import { type OutcomeInput, outcomeUnit } from "../engine/outcome.ts";
import { giveBack } from "../engine/refunds.ts";
import type { Env } from "../kernel/env.ts";
import type { Json } from "../kernel/json.ts";
import { SilenceWatch } from "../kernel/silence.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { Refundable } from "../model/policy/counters.ts";
import { counterKeys, type Evaluation, evaluatePolicy } from "../model/policy/evaluate.ts";
import type { Principal } from "../model/roles.ts";
import { type Mode, type PayloadDoc, type RunDoc, scopeSeal } from "../model/run.ts";
import type { CounterDoc } from "../port/docs.ts";
import type { DocRow, Key, ListQuery, Store, Tx, Unit } from "../port/store.ts";
import type { TableName, Tables } from "../port/tables.ts";
import { planRollback, type RollbackPlan } from "../rollback/plan.ts";
import { plainReasons, type Ruling, rulingOf } from "./past-call.ts";
import { pinTimes } from "./pin-times.ts";
import { type Assumptions, type RecordCount, SandboxTx } from "./view.ts";

/** The memory store, which alone can answer at once. */
export interface SandboxStore extends Store {
  transactSync<T>(unit: Unit<T>): T;
  getSync<N extends TableName>(table: N, key: string): Tables[N] | undefined;
  listSync<N extends TableName>(table: N, query: ListQuery): DocRow<N>[];
}

interface SandboxSetup {
  store: SandboxStore;
  rules: Rules;
  env: Env;
  /** Names logical calls as the live engine does. */
  storeKey: string;
  environment: string | null;
  /** Grants that are in force around what is tried; none where history itself says what was granted. */
  held?: HeldGrants | undefined;
  /** The run that is continued here; every call starts from nothing where it is left out. */
  live?: LiveRun | undefined;
}

/** What a call of a live run would meet now. */
export interface LiveRun {
  permissions: string[];
  /** What the caller's credential may ask for now. */
  max_permissions: Principal["max_permissions"];
  kill_switch: string | null;
  /** Documents that decide about its next calls: halts, counters, standing calls. */
  docs: readonly { key: Key; doc: Tables[TableName] }[];
}

export interface SandboxRun {
  run_id: string;
  actor: string;
  mode: Mode;
  tenant: string | null;
  environment: string | null;
}

export interface Question extends Assumptions {
  tool: string;
  args: Json;
  depends_on: readonly number[];
  at_ms: number;
  /** Asks only: nothing of it stays, whatever the answer. */
  dry: boolean;
  /** The step is not asked for again: what it used up stays, the step does not. */
  forget: boolean;
  /** Whether an answer is to come with what the policy found, which costs a second look. */
  explain(ruling: Ruling): boolean;
}

export interface Judgement {
  ruling: Ruling;
  /** Whether the call may be executed; in observe and advise mode that is so even when it is refused. */
  accepted: boolean;
  reasons: string[];
  risk_score: number;
  evaluation: Evaluation | null;
  result: IntentResult;
}

const PRINCIPAL: Principal = {
  id: "sandbox",
  name: "sandbox",
  roles: ["agent"],
  groups: [],
  tenant: null,
  max_permissions: ["*"],
  allow_observe: true,
};

/** Ends a unit of which nothing is to stay. */
const DISCARD = new Error("discarded");

export class Sandbox {
  readonly rules: Rules;
  private readonly store: SandboxStore;
  private readonly core: Core;
  private readonly template: RunDoc;
  private readonly count: RecordCount = { records: 0 };
  private readonly asking: IntentCaller;
  private now_ms: number;

  constructor({ store, rules, env, storeKey, environment, held = NO_GRANTS, live }: SandboxSetup) {
    this.now_ms = env.now();
    this.store = store;
    this.rules = { manifests: rules.manifests, policy: pinTimes(rules.policy, this.now_ms) };
    this.core = {
      store,
      env: { ...env, now: () => this.now_ms },
      rules: () => this.rules,
      environment,
      killSwitch: () => live?.kill_switch ?? null,
      storeKey,
      leases: new SilenceWatch(),
      today: ({ principal }) => held.people.find(({ id }) => id === principal) ?? null,
      redact: (text) => text,
      listeners: silentListeners,
    };
    store.transactSync({
      run(tx) {
        putHeld(tx, held, env.now());
        for (const { key, doc } of live?.docs ?? []) tx.put(key[0], key[1], doc);
      },
    });
    this.asking = live === undefined ? PRINCIPAL : { ...PRINCIPAL, max_permissions: live.max_permissions };
    const permissions = live?.permissions ?? rules.manifests.permissions;
    this.template = newRun(this.core, PRINCIPAL, { permissions });
  }

  open({ environment, ...facts }: SandboxRun): void {
    const { permissions } = this.template.scope;
    const scope = { permissions, seal: scopeSeal({ ...facts, permissions }) };
    this.store.transactSync(openRunUnit({ ...this.template, ...facts, environment, scope }));
  }

  judge(question: Question): Judgement {
    this.now_ms = question.at_ms;
    const { run_id, tool, args, depends_on } = question;
    const input = { tool, args, reason: "sandbox", depends_on };
    const unit = intentUnit(this.core, this.asking, run_id, input);
    let judged: Judgement | undefined;
    this.attempt((tx) => {
      const result = unit.run(new SandboxTx(tx, this.count, question));
      judged = this.judgement(question, result);
      if (question.dry || !judged.accepted) throw DISCARD;
      if (question.forget) drop(tx, question);
    });
    return judged!;
  }

  /** Reports what became of an accepted step; `forget` drops what only an undo would still need. */
  finish(at: Assumptions, outcome: OutcomeInput, at_ms: number, forget: boolean): void {
    this.now_ms = at_ms;
    const unit = outcomeUnit(this.core, this.asking, at.run_id, at.step, outcome);
    this.attempt((tx) => {
      unit.run(new SandboxTx(tx, this.count, at));
      if (forget) drop(tx, at);
    });
  }

  /** What an accepted call was charged, once its undo was proven. */
  giveBack(refunds: readonly Refundable[]): void {
    this.store.transactSync({ run: (tx) => giveBack(tx, refunds) });
  }

  knowsStep(run_id: string, step: number): boolean {
    return this.store.getSync("steps", stepKey(run_id, step)) !== undefined;
  }

  plan(run_id: string): RollbackPlan {
    const steps = this.store
      .listSync("steps", { owner: run_id, limit: Number.MAX_SAFE_INTEGER })
      .map(({ doc }) => doc);
    const manifests = new Map<string, Manifest>();
    const payloads: (PayloadDoc | undefined)[] = [];
    for (const { step, manifest_hash } of steps) {
      payloads[step] = this.store.getSync("payloads", stepKey(run_id, step));
      if (manifest_hash === null || manifests.has(manifest_hash)) continue;
      const manifest = this.store.getSync("manifests", manifest_hash);
      if (manifest !== undefined) manifests.set(manifest_hash, manifest);
    }
    return planRollback({ run_id }, steps, manifests, payloads);
  }

  private attempt(work: (tx: Tx) => void): void {
    try {
      this.store.transactSync({ run: work });
    } catch (error) {
      if (error !== DISCARD) throw error;
    }
  }

  private judgement(question: Question, result: IntentResult): Judgement {
    const { verdict, decision } = result;
    const ruling = rulingOf(verdict);
    return {
      ruling,
      accepted: decision.decision !== "block",
      reasons: plainReasons(verdict.reasons),
      risk_score: verdict.risk_score,
      evaluation: question.explain(ruling) ? this.evaluate(question, result) : null,
      result,
    };
  }

  /** The policy's findings one by one, on the counters as they stood before the call. */
  private evaluate({ tool, args }: Question, { run, manifest }: IntentResult): Evaluation {
    const { policy } = this.rules;
    const call = policyCall(run, tool, args, manifest);
    const counters = new Map<string, CounterDoc>();
    for (const { key } of counterKeys(policy, call)) {
      const doc = this.store.getSync("counters", key);
      if (doc !== undefined) counters.set(key, doc);
    }
    return evaluatePolicy(policy, call, this.now_ms, counters);
  }
}

function drop(tx: Tx, { run_id, step }: Assumptions): void {
  const key = stepKey(run_id, step);
  tx.delete("payloads", key);
  // A repeat of a logical call that falls looks up whether the one before it still stands.
  if (tx.get("steps", key)?.idempotency === null) tx.delete("steps", key);
}

/** Nothing is assumed but the step's number. */
export function assumeNothing(run_id: string, step: number): Assumptions {
  return {
    run_id,
    step,
    prerequisites: new Set(),
    approved: false,
    logical_call: null,
    released: () => false,
  };
}

/** What refused or held a call, as people call it: `rule big-refunds`, `limit mail-rate`, or the reason itself. */
export function causesOf({ ruling, reasons, evaluation, result }: Judgement): string[] {
  const { approval } = result.verdict;
  if (approval.move === "grant") return [`grant ${approval.grant.id}`];
  if (evaluation === null || ruling === "allow") return [];
  const action = ruling === "needs_approval" ? "require_approval" : "deny";
  const decided = evaluation.findings.filter((finding) => finding.action === action);
  const named = decided.map(({ stage, rule }) => {
    if (rule !== null) return `${stage} ${rule}`;
    return stage === "risk" ? "the risk score" : "a content check";
  });
  const fromPolicy = new Set(evaluation.reasons);
  const fromStages = ruling === "block" ? reasons.filter((reason) => !fromPolicy.has(reason)) : [];
  return [...new Set([...named, ...fromStages])];
}
