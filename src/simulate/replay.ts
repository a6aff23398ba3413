/** Replays a run twice in the sandbox, as recorded and with changes, and compares the results. */
import { policyCall } from "../govern/decide/load-facts.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { PlanKind, RollbackPlan } from "../rollback/plan/plan.ts";
import { ChangeSet, isRenamed, type ReplayChange } from "./changes.ts";
import { HistoryReplay } from "./history.ts";
import { type HistoricCall, type PreviewDecision, plainReasons, truncateReasons } from "./recorded-call.ts";
import { redactedReads } from "./redaction-notes.ts";
import type { SandboxDecision, SandboxEngine } from "./sandbox.ts";

interface ReplayedCall {
  /** Position among the run's captured calls. */
  call: number;
  step: number | null;
  tool: string;
  decision: PreviewDecision;
  reasons: string[];
  risk_score: number;
  /** Original decision. */
  recorded: { decision: PreviewDecision; reasons: string[] };
  changed: boolean;
  notes: string[];
}

export interface ReplayDifference {
  call: number;
  step: number | null;
  tool: string;
  recorded: PreviewDecision;
  baseline: Side;
  variant: Side;
}

interface Side {
  decision: PreviewDecision;
  reasons: string[];
  /** Rollback action for the call; null if there is nothing to undo. */
  undo: PlanKind | null;
}

export interface ReplayReport {
  baseline: ReplayedCall[];
  variant: ReplayedCall[];
  differences: ReplayDifference[];
  baseline_plan: RollbackPlan;
  variant_plan: RollbackPlan;
}

interface ReplayInput {
  run_id: string;
  /** All captured calls of the run, in order. */
  calls: readonly HistoricCall[];
  changes: readonly ReplayChange[];
  /** Sandbox with the active policy. */
  baseline: SandboxEngine;
  /** Sandbox with the proposed policy, or the active one. */
  variant: SandboxEngine;
}

export function replayCalls({ run_id, calls, changes, ...sandboxes }: ReplayInput): ReplayReport {
  const set = new ChangeSet(changes);
  const changed = calls.map((call) => set.apply(call));
  set.assertApplied(run_id);
  const unchanged = calls.map((call) => ({ call, changed: false }));
  const baseline = play(sandboxes.baseline, run_id, calls, unchanged);
  const variant = play(sandboxes.variant, run_id, calls, changed);
  return {
    baseline: baseline.calls,
    variant: variant.calls,
    differences: differencesOf(baseline, variant),
    baseline_plan: baseline.plan,
    variant_plan: variant.plan,
  };
}

interface Played {
  calls: ReplayedCall[];
  plan: RollbackPlan;
  /** Step of each call in this plan, by position of the call. */
  steps: number[];
}

function play(
  sandbox: SandboxEngine,
  run_id: string,
  recorded: readonly HistoricCall[],
  calls: readonly { call: HistoricCall; changed: boolean }[],
): Played {
  const last = recorded.reduce((most, { step }) => Math.max(most, step ?? -1), -1);
  const history = new HistoryReplay(sandbox, { keep_steps: true, first_free_step: last + 1, explain: false });
  const repeats = laterRepeats(recorded);
  const steps: number[] = [];
  const played = calls.map(({ call, changed }, i) => {
    const paths = sandbox.rules.manifests.active(call.tool)?.idempotency ?? [];
    const renamed = changed && isRenamed(paths, recorded[i]!, call);
    const judgement = history.repeat(call, { renamed, repeated: repeats.has(i) });
    const { decision } = judgement.result;
    steps.push(call.step ?? (decision.decision === "block" ? -1 : decision.step));
    return replayed(sandbox, call, i, changed, judgement);
  });
  history.end();
  return { calls: played, plan: sandbox.plan(run_id), steps };
}

/** Positions of blocked calls that history repeats later with the same arguments and accepts. */
function laterRepeats(calls: readonly HistoricCall[]): Set<number> {
  const nameOf = ({ tool, args }: HistoricCall) => `${tool} ${toCanonicalJson(args)}`;
  const passing = new Map<string, number>();
  for (const [i, call] of calls.entries()) if (call.step !== null) passing.set(nameOf(call), i);
  const repeats = new Set<number>();
  for (const [i, call] of calls.entries())
    if (call.step === null && (passing.get(nameOf(call)) ?? -1) > i) repeats.add(i);
  return repeats;
}

function replayed(
  sandbox: SandboxEngine,
  call: HistoricCall,
  place: number,
  changed: boolean,
  judgement: SandboxDecision,
): ReplayedCall {
  const { run, manifest } = judgement.result;
  const reads = call.redacted
    ? redactedReads(sandbox.rules.policy, policyCall(run, call.tool, call.args, manifest))
    : [];
  const notes = reads.map(
    (read) => `${read}, which capture redacted: the decision may differ from the live one`,
  );
  if (call.step === null && judgement.accepted)
    notes.push(
      "history blocked this call; the replay assumes success, with a synthetic result from its manifest",
    );
  return {
    call: place,
    step: call.step,
    tool: call.tool,
    decision: judgement.ruling,
    reasons: truncateReasons(judgement.reasons),
    risk_score: judgement.risk_score,
    recorded: { decision: call.verdict, reasons: truncateReasons(plainReasons(call.reasons)) },
    changed,
    notes,
  };
}

function differencesOf(baseline: Played, variant: Played): ReplayDifference[] {
  const undoOf = ({ plan, steps }: Played) => {
    const kinds = new Map(plan.actions.map(({ step, kind }) => [step, kind]));
    return (place: number): PlanKind | null => kinds.get(steps[place]!) ?? null;
  };
  const [before, after] = [undoOf(baseline), undoOf(variant)];
  return baseline.calls.flatMap((was, place): ReplayDifference[] => {
    const now = variant.calls[place]!;
    const [old, fresh] = [before(place), after(place)];
    if (was.decision === now.decision && old === fresh) return [];
    return [
      {
        call: place,
        step: was.step,
        tool: was.tool,
        recorded: was.recorded.decision,
        baseline: { decision: was.decision, reasons: was.reasons, undo: old },
        variant: { decision: now.decision, reasons: now.reasons, undo: fresh },
      },
    ];
  });
}
