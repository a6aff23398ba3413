/**
 * Repeats history in a sandbox, call by call and in its order. What history shows is believed: a call that
 * it let through had its prerequisites and was no repeat, an approval that it used had been given, outcomes
 * came when they came. Only what the rules in force here refuse goes another way than it went.
 */
import type { OutcomeInput } from "../engine/outcome.ts";
import type { Refundable } from "../model/policy/counters.ts";
import type { Mode, OutcomeStatus } from "../model/run.ts";
import { madeUpBefore, madeUpSuccess } from "./made-up.ts";
import type { PastCall, Ruling } from "./past-call.ts";
import { assumeNothing, type Judgement, type Question, type Sandbox } from "./sandbox.ts";

interface HistoryOptions {
  /** Whether steps are kept for a rollback plan; otherwise they go as soon as they are done. */
  keep_steps: boolean;
  /** The first number for calls that have none, because history refused them. */
  first_free_step: number;
  /** Whether what the policy found is wanted for an answer other than the recorded one. */
  explain: boolean;
}

/** How a call differs from the recorded one, where it was changed for a replay. */
interface Repetition {
  /** The values that name its logical call are others now. */
  renamed: boolean;
  /** History makes the same call once more, and lets it through there: this one was only the question. */
  repeated: boolean;
}

interface RunState {
  waiting: Waiting[];
  /** Steps of history that failed, or that the rules in force here refused. */
  fallen: Set<number> | null;
  /** Tools of which a call went through in history and was refused here. */
  refused: Set<string> | null;
}

interface Waiting {
  step: number;
  at_ms: number;
  logical_call: string | null;
  outcome: OutcomeInput;
}

/** What a proven undo gave back, and when. */
interface Undone {
  at_ms: number;
  refunds: readonly Refundable[];
}

const NO_TOOLS: ReadonlySet<string> = new Set();

export class History {
  private readonly sandbox: Sandbox;
  private readonly options: HistoryOptions;
  private readonly runs = new Map<string, RunState>();
  /** Steps whose logical call is not the one that history knows. */
  private readonly renamed = new Set<string>();
  /** Tools that some manifest requires. */
  private readonly required: ReadonlySet<string>;
  private next_free: number;
  /** Over all runs: a counter may be shared by several. */
  private undone: Undone[] = [];

  constructor(sandbox: Sandbox, options: HistoryOptions) {
    this.sandbox = sandbox;
    this.options = options;
    this.required = new Set(sandbox.rules.manifests.all.flatMap(({ requires }) => requires));
    this.next_free = options.first_free_step;
  }

  get runCount(): number {
    return this.runs.size;
  }

  repeat(call: PastCall, how: Repetition): Judgement {
    const state = this.stateOf(call);
    this.finishDue(call.run_id, state, call.captured_ms);
    this.giveBackDue(call.captured_ms);
    const question = this.question(call, state, how);
    let judgement = this.sandbox.judge(question);
    let accepting = judgement;
    if (judgement.ruling === "needs_approval" && !judgement.accepted && call.step !== null) {
      // History went on from here, so a person is taken to say yes; what follows is then judged as it would be.
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

  /** Reports every outcome that is still to come. */
  end(): void {
    for (const [run_id, state] of this.runs) this.finishDue(run_id, state, Number.POSITIVE_INFINITY);
  }

  private stateOf({ run_id, actor, tenant, environment, mode }: PastCall): RunState {
    const known = this.runs.get(run_id);
    if (known !== undefined) return known;
    const state: RunState = { waiting: [], fallen: null, refused: null };
    this.runs.set(run_id, state);
    this.sandbox.open({ run_id, actor, tenant, environment, mode: mode as Mode });
    return state;
  }

  private question(call: PastCall, state: RunState, how: Repetition): Question {
    const { run_id, tool } = call;
    // Only an approval was missing at most: nothing about the run stood against the call.
    const sound = call.verdict !== "block";
    const known = (step: number) => state.fallen?.has(step) || this.sandbox.knowsStep(run_id, step);
    return {
      run_id,
      tool,
      args: call.args,
      depends_on: call.depends_on.filter(known),
      at_ms: call.captured_ms,
      step: call.step ?? this.next_free++,
      prerequisites: sound ? this.assumedTools(tool, state) : NO_TOOLS,
      approved: false,
      logical_call: how.renamed ? null : call.logical_call,
      released: (holder) => sound && !how.renamed && !this.renamed.has(stepName(holder.run_id, holder.step)),
      dry: call.step === null && how.repeated,
      forget: !this.options.keep_steps && !this.matters(call),
      explain: (ruling: Ruling) => this.options.explain && ruling !== "allow" && ruling !== call.verdict,
    };
  }

  private assumedTools(tool: string, { refused }: RunState): ReadonlySet<string> {
    const requires = this.sandbox.rules.manifests.active(tool)?.requires ?? [];
    if (requires.length === 0) return NO_TOOLS;
    return new Set(refused === null ? requires : requires.filter((name) => !refused.has(name)));
  }

  private carryOn(call: PastCall, state: RunState, question: Question, { result }: Judgement): void {
    const { step, logical_call } = question;
    if (question.forget) return;
    const wait = (outcome: OutcomeInput, at_ms: number) =>
      state.waiting.push({ step, at_ms, logical_call, outcome });
    if (call.step === null) {
      // How it would have ended is not known; it is taken to succeed.
      wait(madeUpSuccess(result.manifest), call.captured_ms);
    } else if (call.outcome !== null) {
      const status = call.outcome as OutcomeStatus;
      // What was there before a call is not captured; a plan shows its undo with what was made up.
      const before = madeUpBefore(result.manifest);
      const outcome: OutcomeInput = before === undefined ? { status } : { status, before };
      if (call.has_result) outcome.result = call.result;
      wait(outcome, call.finished_ms ?? call.captured_ms);
    }
  }

  /** Whether a later decision can turn on how the call ended. */
  private matters({ step, tool, outcome }: PastCall): boolean {
    const status = step === null ? "succeeded" : outcome;
    return status === "failed" || (status === "succeeded" && this.required.has(tool));
  }

  private finishDue(run_id: string, state: RunState, now_ms: number): void {
    if (state.waiting.length === 0) return;
    const due = state.waiting.filter(({ at_ms }) => at_ms <= now_ms).sort((a, b) => a.at_ms - b.at_ms);
    if (due.length === 0) return;
    state.waiting = state.waiting.filter(({ at_ms }) => at_ms > now_ms);
    for (const { step, at_ms, logical_call, outcome } of due) {
      const at = { ...assumeNothing(run_id, step), logical_call };
      this.sandbox.finish(at, outcome, at_ms, !this.options.keep_steps);
      if (outcome.status === "failed") this.fall(state, step);
    }
  }

  private noteUndone({ undone_ms }: PastCall, { result }: Judgement): void {
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
