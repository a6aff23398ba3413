/** Policy simulation: every captured call judged again, and set against the decision that was recorded. */
import { policyCall } from "../engine/gather.ts";
import { History } from "./history.ts";
import { few, type PastCall, plainReasons, type Ruling } from "./past-call.ts";
import { RedactionNotes } from "./redacted-reads.ts";
import { CHANGES, type ChangeName, Review, type ReviewLine } from "./review.ts";
import { causesOf, type Judgement, type Sandbox } from "./sandbox.ts";

export interface SimulatedCall {
  run_id: string;
  step: number | null;
  tool: string;
  actor: string;
  captured_ms: number;
  old: { decision: Ruling; reasons: string[] };
  new: { decision: Ruling; reasons: string[]; by: string[]; risk_score: number };
}

export interface SimulationReport {
  summary: { calls: number; runs: number; unchanged: number } & Record<ChangeName, number>;
  /** The changes as a reviewer reads them: one line for each cause, the largest first. */
  changes: ReviewLine[];
  newly_blocked: SimulatedCall[];
  newly_needs_approval: SimulatedCall[];
  newly_allowed: SimulatedCall[];
  notes: string[];
}

/** Calls listed one by one in each group; the summary and the changes count them all. */
const MOST_LISTED = 1_000;
/** Far above every step that a run can have. */
const FREE_STEPS = 2 ** 40;

/** `history` in the order in which the calls were decided. */
export async function judgeAgain(
  sandbox: Sandbox,
  history: AsyncIterable<readonly PastCall[]>,
): Promise<SimulationReport> {
  const past = new History(sandbox, { keep_steps: false, first_free_step: FREE_STEPS, explain: true });
  const report = new ReportBuilder(sandbox);
  for await (const page of history) {
    for (const call of page) {
      // An ask that waited for approval did not run; where it was approved, history has it once more.
      const repeated = call.verdict === "needs_approval";
      report.add(call, past.repeat(call, { renamed: false, repeated }));
    }
  }
  return report.build(past.runCount);
}

class ReportBuilder {
  private readonly sandbox: Sandbox;
  private readonly groups: Record<ChangeName, SimulatedCall[]> = {
    newly_blocked: [],
    newly_needs_approval: [],
    newly_allowed: [],
  };
  private readonly counts: Record<ChangeName, number> = {
    newly_blocked: 0,
    newly_needs_approval: 0,
    newly_allowed: 0,
  };
  private readonly review = new Review();
  private readonly redactions = new RedactionNotes();
  private calls = 0;
  private unchanged = 0;

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  add(call: PastCall, judgement: Judgement): void {
    this.calls++;
    const { manifest, run } = judgement.result;
    if (call.redacted)
      this.redactions.add(this.sandbox.rules.policy, policyCall(run, call.tool, call.args, manifest));
    if (judgement.ruling === call.verdict) {
      this.unchanged++;
      return;
    }
    const change = CHANGES[judgement.ruling];
    this.counts[change]++;
    const simulated = compared(call, judgement);
    this.review.add(change, simulated);
    if (this.groups[change].length < MOST_LISTED) this.groups[change].push(simulated);
  }

  build(runs: number): SimulationReport {
    return {
      summary: { calls: this.calls, runs, unchanged: this.unchanged, ...this.counts },
      changes: this.review.lines(),
      ...this.groups,
      notes: [...this.redactions.sentences(), ...this.cutNotes()],
    };
  }

  private cutNotes(): string[] {
    return Object.values(CHANGES).flatMap((change) =>
      this.counts[change] > MOST_LISTED
        ? [`${change} lists the first ${MOST_LISTED} of ${this.counts[change]} calls`]
        : [],
    );
  }
}

function compared(call: PastCall, judgement: Judgement): SimulatedCall {
  const { run_id, step, tool, actor, captured_ms } = call;
  const { ruling, reasons, risk_score } = judgement;
  return {
    run_id,
    step,
    tool,
    actor,
    captured_ms,
    old: { decision: call.verdict, reasons: few(plainReasons(call.reasons)) },
    new: { decision: ruling, reasons: few(reasons), by: few(causesOf(judgement)), risk_score },
  };
}
