/**
 * Sandbox engine: runs the live engine's units on a separate memory store. Unless it gets a live run, its runs have
 * every permission of the manifests, its counters start empty, and no halt applies. A blocked call leaves no data
 * behind.
 */
import { type ActiveRules, type EngineCore, type IntentCaller, silentListeners } from "../govern/core.ts";
import { type IntentResult, intentUnit } from "../govern/decide/intent.ts";
import { type OutcomeInput, outcomeUnit } from "../govern/decide/outcome.ts";
import { refundCharges } from "../govern/decide/refunds.ts";
import { stepKey } from "../govern/document-keys.ts";
import { EMPTY_GRANT_SNAPSHOT, type GrantSnapshot, loadSnapshot } from "../govern/grants/resolve.ts";
import type { CounterDoc } from "../govern/port/docs.ts";
import type { DocKey, DocRow, ListQuery, StateStore, StoreTx, UnitOfWork } from "../govern/port/store.ts";
import type { TableDocs, TableName } from "../govern/port/tables.ts";
import type { CallerPrincipal } from "../govern/roles.ts";
import { newRun, openRunUnit } from "../govern/runs/open-run.ts";
import { type PayloadDoc, type RunDoc, type RunMode, scopeSeal } from "../govern/runs/run.ts";
import { type GivenValues, writeGivenValues } from "../govern/traces/given.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { SilenceWatch } from "../kernel/silence-watch.ts";
import { planRollback, type RollbackPlan } from "../rollback/plan/plan.ts";
import type { ToolManifest } from "../rules/manifest/types.ts";
import type { RefundableCharge } from "../rules/policy/checks/counters.ts";
import { counterKeys, evaluatePolicy, type PolicyEvaluation } from "../rules/policy/evaluate.ts";
import { type RecordCount, type SandboxAssumptions, SandboxTx } from "./overlay-tx.ts";
import { type PreviewDecision, plainReasons, toPreviewDecision } from "./recorded-call.ts";
import { resolveTimeWindows } from "./time-windows.ts";

/** Memory store, whose reads are synchronous. */
export interface SandboxStore extends StateStore {
  transactSync<T>(unit: UnitOfWork<T>): T;
  getSync<N extends TableName>(table: N, key: string): TableDocs[N] | undefined;
  listSync<N extends TableName>(table: N, query: ListQuery): DocRow<N>[];
}

interface SandboxSetup {
  store: SandboxStore;
  rules: ActiveRules;
  env: RuntimeEnv;
  /** Key that identifies logical calls as in the live engine. */
  storeKey: string;
  environment: string | null;
  /** Active grants; absent when history already records which grants applied. */
  held?: GrantSnapshot | undefined;
  /** Run to continue; without it every call starts from an empty state. */
  live?: LiveRun | undefined;
}

/** Current state that the next call of a live run would see. */
export interface LiveRun {
  permissions: string[];
  /** The run's own key, so that its followed values are found. */
  salt: string;
  /** Permissions that the caller's credential can request now. */
  max_permissions: CallerPrincipal["max_permissions"];
  kill_switch: string | null;
  /** Documents that affect its next decisions: halts, counters, active calls. */
  docs: readonly { key: DocKey; doc: TableDocs[TableName] }[];
}

export interface SandboxRun {
  run_id: string;
  actor: string;
  acting?: readonly string[] | undefined;
  mode: RunMode;
  tenant: string | null;
  environment: string | null;
  /** Root of the run's tree, if it is a child run. */
  counted_run?: string | undefined;
  /** Values that people gave the run, or the root of its tree. */
  given?: GivenValues | undefined;
}

export interface SandboxCall extends SandboxAssumptions {
  tool: string;
  args: JsonValue;
  depends_on: readonly number[];
  /** Run of the confined command that made the call. */
  sandboxed?: string | undefined;
  at_ms: number;
  /** True to only decide, and store nothing. */
  dry: boolean;
  /** True to drop the step after the call. Its charges remain. */
  forget: boolean;
  /** True for decisions that need the policy's findings, which costs a second evaluation. */
  explain(ruling: PreviewDecision): boolean;
}

export interface SandboxDecision {
  ruling: PreviewDecision;
  /** True if the agent can make the call; in observe and advise mode also if it would be blocked. */
  accepted: boolean;
  reasons: string[];
  risk_score: number;
  evaluation: PolicyEvaluation | null;
  result: IntentResult;
}

const PRINCIPAL: CallerPrincipal = {
  id: "sandbox",
  name: "sandbox",
  roles: ["agent"],
  groups: [],
  tenant: null,
  max_permissions: ["*"],
  allow_observe: true,
};

/** Level of a child run in a sandbox, where only the root of its tree matters. */
const FIRST_CHILD = 2;

/** Aborts a unit that must not store anything. */
const DISCARD = new Error("discarded");

export class SandboxEngine {
  readonly rules: ActiveRules;
  private readonly store: SandboxStore;
  private readonly core: EngineCore;
  private readonly template: RunDoc;
  private readonly count: RecordCount = { records: 0 };
  private readonly asking: IntentCaller;
  private now_ms: number;

  constructor({ store, rules, env, storeKey, environment, held = EMPTY_GRANT_SNAPSHOT, live }: SandboxSetup) {
    this.now_ms = env.now();
    this.store = store;
    this.rules = { manifests: rules.manifests, policy: resolveTimeWindows(rules.policy, this.now_ms) };
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
        loadSnapshot(tx, held, env.now());
        for (const { key, doc } of live?.docs ?? []) tx.put(key[0], key[1], doc);
      },
    });
    this.asking = live === undefined ? PRINCIPAL : { ...PRINCIPAL, max_permissions: live.max_permissions };
    const permissions = live?.permissions ?? rules.manifests.permissions;
    const template = newRun(this.core, PRINCIPAL, { permissions });
    this.template = live === undefined ? template : { ...template, salt: live.salt };
  }

  /** Opens a run once. A child run has its root, which owns the counters. */
  open({ environment, counted_run, given, ...facts }: SandboxRun): void {
    if (this.store.getSync("runs", facts.run_id) !== undefined) return;
    if (counted_run !== undefined) this.open({ ...facts, environment, given, run_id: counted_run });
    const child_of =
      counted_run === undefined ? undefined : { parent: counted_run, counted_run, level: FIRST_CHILD };
    const { permissions } = this.template.scope;
    const scope = { permissions, seal: scopeSeal({ ...facts, permissions, child_of }) };
    const salt = given?.salt ?? this.template.salt;
    const run = { ...this.template, ...facts, environment, scope, salt };
    this.store.transactSync(openRunUnit(child_of === undefined ? run : { ...run, child_of }));
    if (given === undefined || child_of !== undefined) return;
    this.store.transactSync({ run: (tx) => writeGivenValues(tx, facts.run_id, given.fingerprints) });
  }

  judge(question: SandboxCall): SandboxDecision {
    this.now_ms = question.at_ms;
    const { run_id, tool, args, depends_on } = question;
    const input = { tool, args, reason: "sandbox", depends_on, replayed_sandbox: question.sandboxed };
    const unit = intentUnit(this.core, this.asking, run_id, input);
    let judged: SandboxDecision | undefined;
    this.attempt((tx) => {
      const result = unit.run(new SandboxTx(tx, this.count, question));
      judged = this.judgement(question, result);
      if (question.dry || !judged.accepted) throw DISCARD;
      if (question.forget) drop(tx, question);
    });
    return judged!;
  }

  /** Reports the outcome of an accepted step; `forget` drops data that only an undo would need. */
  finish(at: SandboxAssumptions, outcome: OutcomeInput, at_ms: number, forget: boolean): void {
    this.now_ms = at_ms;
    const unit = outcomeUnit(this.core, this.asking, at.run_id, at.step, outcome);
    this.attempt((tx) => {
      unit.run(new SandboxTx(tx, this.count, at));
      if (forget) drop(tx, at);
    });
  }

  /** Refunds the charges of a call after a verified undo. */
  giveBack(refunds: readonly RefundableCharge[]): void {
    this.store.transactSync({ run: (tx) => refundCharges(tx, refunds) });
  }

  knowsStep(run_id: string, step: number): boolean {
    return this.store.getSync("steps", stepKey(run_id, step)) !== undefined;
  }

  plan(run_id: string): RollbackPlan {
    const steps = this.store
      .listSync("steps", { owner: run_id, limit: Number.MAX_SAFE_INTEGER })
      .map(({ doc }) => doc);
    const manifests = new Map<string, ToolManifest>();
    const payloads: (PayloadDoc | undefined)[] = [];
    for (const { step, manifest_hash } of steps) {
      payloads[step] = this.store.getSync("payloads", stepKey(run_id, step));
      if (manifest_hash === null || manifests.has(manifest_hash)) continue;
      const manifest = this.store.getSync("manifests", manifest_hash);
      if (manifest !== undefined) manifests.set(manifest_hash, manifest);
    }
    return planRollback({ run_id }, steps, manifests, payloads);
  }

  private attempt(work: (tx: StoreTx) => void): void {
    try {
      this.store.transactSync({ run: work });
    } catch (error) {
      if (error !== DISCARD) throw error;
    }
  }

  private judgement(question: SandboxCall, result: IntentResult): SandboxDecision {
    const { verdict, decision } = result;
    const ruling = toPreviewDecision(verdict);
    return {
      ruling,
      accepted: decision.decision !== "block",
      reasons: plainReasons(verdict.reasons),
      risk_score: verdict.risk_score,
      evaluation: question.explain(ruling) ? this.evaluate(result) : null,
      result,
    };
  }

  /** Evaluates the policy again for its findings, with the counters from before the call. */
  private evaluate({ call }: IntentResult): PolicyEvaluation {
    const { policy } = this.rules;
    const counters = new Map<string, CounterDoc>();
    for (const { key } of counterKeys(policy, call)) {
      const doc = this.store.getSync("counters", key);
      if (doc !== undefined) counters.set(key, doc);
    }
    return evaluatePolicy(policy, call, this.now_ms, counters);
  }
}

function drop(tx: StoreTx, { run_id, step }: SandboxAssumptions): void {
  const key = stepKey(run_id, step);
  tx.delete("payloads", key);
  // A repeated logical call checks if the earlier step is still active, so steps with an idempotency key remain.
  if (tx.get("steps", key)?.idempotency === null) tx.delete("steps", key);
}

/** Default assumptions for a step. */
export function defaultAssumptions(run_id: string, step: number): SandboxAssumptions {
  return {
    run_id,
    step,
    prerequisites: new Set(),
    approved: false,
    logical_call: null,
    released: () => false,
  };
}

/** Causes of a decision, such as `rule big-refunds`, `limit mail-rate`, or the reason itself. */
export function listCauses({ ruling, reasons, evaluation, result }: SandboxDecision): string[] {
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
