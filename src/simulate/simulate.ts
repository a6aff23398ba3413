/** Policy simulation: evaluates every captured call again and compares the result with the recorded decision. */
import { policyCall } from "../govern/decide/load-facts.ts";
import { HistoryReplay } from "./history.ts";
import { type HistoricCall, type PreviewDecision, plainReasons, truncateReasons } from "./recorded-call.ts";
import { RedactionNotes } from "./redaction-notes.ts";
import { CHANGE_NAMES, type ChangeName, PolicyReview, type ReviewLine } from "./review.ts";
import { listCauses, type SandboxDecision, type SandboxEngine } from "./sandbox.ts";

export interface SimulatedCall {
  run_id: string;
  step: number | null;
  tool: string;
  actor: string;
  captured_ms: number;
  old: { decision: PreviewDecision; reasons: string[] };
  new: { decision: PreviewDecision; reasons: string[]; by: string[]; risk_score: number };
}

export interface SimulationReport {
  summary: { calls: number; runs: number; unchanged: number } & Record<ChangeName, number>;
  /** Changes for reviewers, one line per cause, largest first. */
  changes: ReviewLine[];
  newly_blocked: SimulatedCall[];
  newly_needs_approval: SimulatedCall[];
  newly_allowed: SimulatedCall[];
  notes: string[];
}

/** Maximum calls listed in each group; the summary and the changes count all of them. */
const MAX_LISTED_CALLS = 1_000;
/** Step number far above those of any run. */
const FREE_STEPS = 2 ** 40;

/** Expects `history` in decision order. */
export async function reevaluateCalls(
  sandbox: SandboxEngine,
  history: AsyncIterable<readonly HistoricCall[]>,
): Promise<SimulationReport> {
  const past = new HistoryReplay(sandbox, { keep_steps: false, first_free_step: FREE_STEPS, explain: true });
  const report = new ReportBuilder(sandbox);
  for await (const page of history) {
    for (const call of page) {
      // A call that waited for approval did not run. If it was approved, history contains its repetition.
      const repeated = call.verdict === "needs_approval";
      report.add(call, past.repeat(call, { renamed: false, repeated }));
    }
  }
  return report.build(past.runCount);
}

class ReportBuilder {
  private readonly sandbox: SandboxEngine;
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
  private readonly review = new PolicyReview();
  private readonly redactions = new RedactionNotes();
  private calls = 0;
  private unchanged = 0;

  constructor(sandbox: SandboxEngine) {
    this.sandbox = sandbox;
  }

  add(call: HistoricCall, judgement: SandboxDecision): void {
    this.calls++;
    const { manifest, run } = judgement.result;
    if (call.redacted)
      this.redactions.add(this.sandbox.rules.policy, policyCall(run, call.tool, call.args, manifest));
    if (judgement.ruling === call.verdict) {
      this.unchanged++;
      return;
    }
    const change = CHANGE_NAMES[judgement.ruling];
    this.counts[change]++;
    const simulated = compared(call, judgement);
    this.review.add(change, simulated);
    if (this.groups[change].length < MAX_LISTED_CALLS) this.groups[change].push(simulated);
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
    return Object.values(CHANGE_NAMES).flatMap((change) =>
      this.counts[change] > MAX_LISTED_CALLS
        ? [`${change} lists the first ${MAX_LISTED_CALLS} of ${this.counts[change]} calls`]
        : [],
    );
  }
}

function compared(call: HistoricCall, judgement: SandboxDecision): SimulatedCall {
  const { run_id, step, tool, actor, captured_ms } = call;
  const { ruling, reasons, risk_score } = judgement;
  return {
    run_id,
    step,
    tool,
    actor,
    captured_ms,
    old: { decision: call.verdict, reasons: truncateReasons(plainReasons(call.reasons)) },
    new: {
      decision: ruling,
      reasons: truncateReasons(reasons),
      by: truncateReasons(listCauses(judgement)),
      risk_score,
    },
  };
}
