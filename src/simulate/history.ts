/**
 * Replays history in a sandbox, call by call, in order. Recorded facts are trusted: an accepted call had its
 * prerequisites and was not a repeat, a used approval had been given, and outcomes arrived at their recorded time. Only
 * calls that the current rules block take another course.
 */
import type { OutcomeInput } from "../govern/decide/outcome.ts";
import type { OutcomeStatus, RunMode } from "../govern/runs/run.ts";
import type { RefundableCharge } from "../rules/policy/checks/counters.ts";
import type { HistoricCall, PreviewDecision } from "./recorded-call.ts";
import { defaultAssumptions, type SandboxCall, type SandboxDecision, type SandboxEngine } from "./sandbox.ts";
import { synthesizeBefore, synthesizeResult } from "./synthetic-results.ts";

interface HistoryOptions {
  /** True to retain steps for a rollback plan; otherwise they are dropped once they are done. */
  keep_steps: boolean;
  /** First number for calls that history blocked and that thus have no step. */
  first_free_step: number;
  /** True to include policy findings for decisions that differ from the recorded ones. */
  explain: boolean;
}

/** Differences between a call and the recorded one, after changes for a replay. */
interface Repetition {
  /** True if its logical call has another identity now. */
  renamed: boolean;
  /** True if history repeats the same call later and accepts it, so that this one was only a request. */
  repeated: boolean;
}

interface RunState {
  waiting: Waiting[];
  /** Recorded steps that failed, or that the current rules block. */
  fallen: Set<number> | null;
  /** Tools with a call that history accepted and the sandbox blocked. */
  refused: Set<string> | null;
}

interface Waiting {
  step: number;
  at_ms: number;
  logical_call: string | null;
  outcome: OutcomeInput;
}

/** Refund of a verified undo, and its time. */
interface Undone {
  at_ms: number;
  refunds: readonly RefundableCharge[];
}

const NO_TOOLS: ReadonlySet<string> = new Set();

export class HistoryReplay {
  private readonly sandbox: SandboxEngine;
  private readonly options: HistoryOptions;
  private readonly runs = new Map<string, RunState>();
  /** Steps whose logical call differs from the recorded one. */
  private readonly renamed = new Set<string>();
  /** Tools that some manifest requires. */
  private readonly required: ReadonlySet<string>;
  private next_free: number;
  /** For all runs, since runs can share a counter. */
  private undone: Undone[] = [];

  constructor(sandbox: SandboxEngine, options: HistoryOptions) {
    this.sandbox = sandbox;
    this.options = options;
    this.required = new Set(sandbox.rules.manifests.all.flatMap(({ requires }) => requires));
    this.next_free = options.first_free_step;
  }

  get runCount(): number {
    return this.runs.size;
  }

  repeat(call: HistoricCall, how: Repetition): SandboxDecision {
    const state = this.stateOf(call);
    this.finishDue(call.run_id, state, call.captured_ms);
    this.giveBackDue(call.captured_ms);
    const question = this.question(call, state, how);
    let judgement = this.sandbox.judge(question);
    let accepting = judgement;
    if (judgement.ruling === "needs_approval" && !judgement.accepted && call.step !== null) {
      // History continued here, so assume an approval and decide the following calls on that basis.
      accepting = this.sandbox.judge({ ...question, approved: true });
      if (call.approval_used) judgement = accepting;
    }
    if (accepting.accepted && !question.dry) {
      this.carryOn(call, state, question, judgement);
      this.noteUndone(call, accepting);
    } else if (call.step !== null) this.fall(state, call.step, call.tool);
    if (how.renamed) this.renamed.add(stepName(call.run_id, question.step));
    return judgement;
  }

  /** Reports all remaining outcomes. */
  end(): void {
    for (const [run_id, state] of this.runs) this.finishDue(run_id, state, Number.POSITIVE_INFINITY);
  }

  private stateOf(call: HistoricCall): RunState {
    const { run_id, actor, acting, tenant, environment, mode, counted_run, given } = call;
    const known = this.runs.get(run_id);
    if (known !== undefined) return known;
    const state: RunState = { waiting: [], fallen: null, refused: null };
    this.runs.set(run_id, state);
    const facts = { run_id, actor, acting, tenant, environment, mode: mode as RunMode, counted_run, given };
    this.sandbox.open(facts);
    return state;
  }

  private question(call: HistoricCall, state: RunState, how: Repetition): SandboxCall {
    const { run_id, tool } = call;
    // At most an approval was missing; nothing else blocked the call.
    const sound = call.verdict !== "block";
    const known = (step: number) => state.fallen?.has(step) || this.sandbox.knowsStep(run_id, step);
    return {
      run_id,
      tool,
      args: call.args,
      depends_on: call.depends_on.filter(known),
      ...(call.sandboxed === undefined ? {} : { sandboxed: call.sandboxed }),
      at_ms: call.captured_ms,
      step: call.step ?? this.next_free++,
      prerequisites: sound ? this.assumedTools(tool, state) : NO_TOOLS,
      approved: false,
      logical_call: how.renamed ? null : call.logical_call,
      released: (holder) => sound && !how.renamed && !this.renamed.has(stepName(holder.run_id, holder.step)),
      dry: call.step === null && how.repeated,
      forget: !this.options.keep_steps && !this.matters(call),
      explain: (ruling: PreviewDecision) =>
        this.options.explain && ruling !== "allow" && ruling !== call.verdict,
    };
  }

  private assumedTools(tool: string, { refused }: RunState): ReadonlySet<string> {
    const requires = this.sandbox.rules.manifests.active(tool)?.requires ?? [];
    if (requires.length === 0) return NO_TOOLS;
    return new Set(refused === null ? requires : requires.filter((name) => !refused.has(name)));
  }

  private carryOn(
    call: HistoricCall,
    state: RunState,
    question: SandboxCall,
    { result }: SandboxDecision,
  ): void {
    const { step, logical_call } = question;
    if (question.forget) return;
    const wait = (outcome: OutcomeInput, at_ms: number) =>
      state.waiting.push({ step, at_ms, logical_call, outcome });
    if (call.step === null) {
      // The outcome is unknown, so assume success.
      wait(synthesizeResult(result.manifest), call.captured_ms);
    } else if (call.outcome !== null) {
      const status = call.outcome as OutcomeStatus;
      // Capture does not record the state before a call, so the plan uses synthetic state for its undo.
      const before = synthesizeBefore(result.manifest);
      const outcome: OutcomeInput = before === undefined ? { status } : { status, before };
      if (call.has_result) outcome.result = call.result;
      wait(outcome, call.finished_ms ?? call.captured_ms);
    }
  }

  /** True if a later decision can depend on the outcome of the call. */
  private matters({ step, tool, outcome }: HistoricCall): boolean {
    const status = step === null ? "succeeded" : outcome;
    const { carries, compares } = this.sandbox.rules.policy;
    if (carries !== null || compares) return status !== null;
    return status === "failed" || (status === "succeeded" && this.required.has(tool));
  }

  private finishDue(run_id: string, state: RunState, now_ms: number): void {
    if (state.waiting.length === 0) return;
    const due = state.waiting.filter(({ at_ms }) => at_ms <= now_ms).sort((a, b) => a.at_ms - b.at_ms);
    if (due.length === 0) return;
    state.waiting = state.waiting.filter(({ at_ms }) => at_ms > now_ms);
    for (const { step, at_ms, logical_call, outcome } of due) {
      const at = { ...defaultAssumptions(run_id, step), logical_call };
      this.sandbox.finish(at, outcome, at_ms, !this.options.keep_steps);
      if (outcome.status === "failed") this.fall(state, step);
    }
  }

  private noteUndone({ undone_ms }: HistoricCall, { result }: SandboxDecision): void {
    if (undone_ms === undefined) return;
    const refunds = result.verdict.charges.flatMap(({ refund }) => refund ?? []);
    if (refunds.length > 0) this.undone.push({ at_ms: undone_ms, refunds });
  }

  private giveBackDue(now_ms: number): void {
    if (!this.undone.some(({ at_ms }) => at_ms <= now_ms)) return;
    for (const { at_ms, refunds } of this.undone) if (at_ms <= now_ms) this.sandbox.giveBack(refunds);
    this.undone = this.undone.filter(({ at_ms }) => at_ms > now_ms);
  }

  private fall(state: RunState, step: number, tool?: string): void {
    state.fallen ??= new Set();
    state.fallen.add(step);
    if (tool === undefined) return;
    state.refused ??= new Set();
    state.refused.add(tool);
  }
}

function stepName(run_id: string, step: number): string {
  return `${run_id}/${step}`;
}
