/**
 * The facts of a run report, read once and then shown in several formats: who ran what, how each step stands,
 * what a rollback could do, and the whole trail with its hashes. Argument values are not among them.
 */
import { notFound } from "../../kernel/errors.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { isSealed, type RunDoc, STEP_STATUSES, type StepDoc } from "../../model/run.ts";
import type { JobDoc } from "../../port/docs.ts";
import type { Store } from "../../port/store.ts";
import { doInTurns } from "../../process/turns.ts";
import { loadForRollback } from "../../rollback/load.ts";
import {
  hasConflict,
  hasFailed,
  type PlanAction,
  planningRollback,
  type RollbackPlan,
} from "../../rollback/plan.ts";
import type { RollbackReport } from "../../rollback/report.ts";
import { shownRecords } from "../../store/confined.ts";
import { readingTrail } from "../run-trail.ts";
import { time } from "./text.ts";

export interface ReportStep {
  step: number;
  tool: string;
  effect: string | null;
  status: string;
  reason: string | null;
  error: string | null;
  manifest_version: string | null;
  /** Unknown once the run's working data was deleted. */
  risk_score: number | null;
  intended_ms: number;
  finished_ms: number | null;
  /** Undone, and the declared read-back could not be run. */
  unverified: boolean;
}

interface RunTerms {
  actor: string;
  mode: string;
  tenant: string | null;
  environment: string | null;
  reason: string | null;
  created_ms: number;
  permissions: string[];
  seal: string;
}

export interface RunReport {
  run_id: string;
  generated_ms: number;
  version: string;
  region: string | null;
  /** The hash of the policy in force when the report was made. */
  policy: string;
  ledger: { records: number; head: string };
  /** Why the run's working data cannot be used, so that the trail is all there is; null where it can. */
  without: "deleted" | "changed" | null;
  /** Null where the working data cannot be used. */
  run: RunTerms | null;
  steps: ReportStep[];
  outlook: { fully_reversible: boolean; actions: PlanAction[] } | null;
  trail: LedgerRecord[];
  /** What is wrong with the trail; null where every hash, link and number holds. */
  problem: string | null;
}

interface ReportContext {
  now_ms: number;
  version: string;
  region: string | null;
  policy: string;
}

const PAGE = 1_000;

export async function collectRunReport(
  store: Store,
  run_id: string,
  context: ReportContext,
): Promise<RunReport> {
  const run = await store.get("runs", run_id);
  const { records, hash } = await store.head();
  const lines = await trailLines(store, run_id, records);
  if (run === undefined && lines.length === 0) throw notFound(`unknown run ${run_id}`, "unknown_run");
  const trail = lines.map((line) => JSON.parse(line) as LedgerRecord);
  // A run whose scope was edited in the store is shown as the ledger knows it.
  const loaded = run === undefined || !isSealed(run) ? null : await loadForRollback(store, run_id);
  // A report is handed around: what was there before a call is shown by its size.
  const view = { now_ms: context.now_ms, mask: true };
  const plan =
    loaded === null
      ? null
      : await doInTurns(planningRollback(loaded.run, loaded.steps, loaded.manifests, loaded.payloads, view));
  const conflicts = conflictsOf(run, await store.get("jobs", run_id));
  const changed = run !== undefined && loaded === null;
  return {
    run_id,
    generated_ms: context.now_ms,
    version: context.version,
    region: context.region,
    policy: context.policy,
    ledger: { records: await shownRecords(store), head: hash },
    without: loaded !== null ? null : changed ? "changed" : "deleted",
    run: loaded === null ? null : runFacts(loaded.run),
    steps: loaded === null ? stepsOfTrail(trail) : loaded.steps.map(stepOf),
    outlook: plan === null ? null : outlookOf(plan, conflicts),
    trail,
    problem: (changed ? SEAL_BROKEN : (await doInTurns(readingTrail(lines, run_id))).problem) ?? null,
  };
}

/**
 * The steps that the last rollback left alone over a conflict. It writes no record: the run names them, whoever rolled
 * back. Runs of earlier versions do not; then the report of the last job does.
 */
function conflictsOf(run: RunDoc | undefined, job: JobDoc | undefined): ReadonlySet<number> {
  const left = run?.undo_left?.steps.filter(({ why }) => why === "conflict") ?? [];
  const report = (job?.report ?? null) as RollbackReport | null;
  const failed = report?.failed.filter(({ conflict }) => conflict) ?? [];
  return new Set([...left, ...failed].map(({ step }) => step));
}

function outlookOf({ fully_reversible, actions }: RollbackPlan, conflicts: ReadonlySet<number>) {
  const known = actions.map((action) =>
    action.kind === "compensate" && conflicts.has(action.step)
      ? { ...action, conflict: true as const }
      : action,
  );
  return { fully_reversible: fully_reversible && !known.some(hasConflict), actions: known };
}

const SEAL_BROKEN = "scope seal mismatch: the stored scope of this run was changed";

/** What a report that has only the ledger says of that. */
export const WITHOUT = {
  deleted: "The run's working data was deleted; this report is made from the ledger alone.",
  changed:
    "The run's working data was changed behind the service's back; this report is made from the ledger alone.",
} as const;

async function trailLines(store: Store, run_id: string, size: number): Promise<string[]> {
  const all: string[] = [];
  let from = 0;
  while (from < size) {
    const lines = await store.records({ run_id, from, to: size - 1, limit: PAGE });
    all.push(...lines);
    if (lines.length < PAGE) break;
    from = (JSON.parse(lines[lines.length - 1]!) as LedgerRecord).seq + 1;
  }
  return all;
}

function runFacts(run: RunDoc): RunTerms {
  const { actor, mode, tenant, environment, reason, created_ms, scope } = run;
  return {
    actor,
    mode,
    tenant,
    environment,
    reason,
    created_ms,
    permissions: scope.permissions,
    seal: scope.seal,
  };
}

function stepOf(doc: StepDoc): ReportStep {
  const {
    step,
    tool,
    effect,
    status,
    reason,
    error,
    manifest_version,
    risk_score,
    intended_ms,
    finished_ms,
  } = doc;
  const unverified = doc.unverified ?? false;
  return {
    step,
    tool,
    effect,
    status,
    reason,
    error,
    manifest_version,
    risk_score,
    intended_ms,
    finished_ms,
    unverified,
  };
}

/** Events after which a step has that status. */
const STATUSES: ReadonlySet<string> = new Set(STEP_STATUSES);
const OUTCOMES: ReadonlySet<string> = new Set(["succeeded", "failed", "uncertain"]);

/** How the steps stood, told by the trail alone. */
function stepsOfTrail(trail: readonly LedgerRecord[]): ReportStep[] {
  const steps = new Map<number, ReportStep>();
  for (const { step, event, ...record } of trail) {
    if (step === undefined) continue;
    const earlier = steps.get(step);
    if (event === "unverified" && earlier !== undefined) earlier.unverified = true;
    if (!STATUSES.has(event)) continue;
    const known = earlier ?? {
      step,
      tool: record.tool ?? "",
      effect: record.effect ?? null,
      status: event,
      reason: record.reason ?? null,
      error: null,
      manifest_version: record.manifest_version ?? null,
      risk_score: null,
      intended_ms: record.ts_ms,
      finished_ms: null,
      unverified: false,
    };
    const failed = event === "failed" || event === "compensation_failed";
    steps.set(step, {
      ...known,
      status: event,
      error: failed ? (record.detail ?? null) : known.error,
      finished_ms: OUTCOMES.has(event) ? record.ts_ms : known.finished_ms,
    });
  }
  return [...steps.values()].sort((a, b) => a.step - b.step);
}

/** What a rollback would do with a step, in words. */
export function outlookWords(action: PlanAction): string {
  switch (action.kind) {
    case "compensate": {
      const how = [
        action.compensation_kind === "inverse" ? "restores the exact state" : "makes amends",
        action.verified ? "will be read back" : "will not be read back",
        ...(action.needs_approval ? ["needs an approval"] : []),
        ...(action.closes_ms === undefined ? [] : [`until ${time(action.closes_ms)}`]),
      ];
      if (hasConflict(action))
        return `in conflict: left alone when it was last tried, because it had been changed since; ${action.compensation_tool} would overwrite that`;
      const failed = hasFailed(action) ? `; failed when it was tried: ${action.last_error}` : "";
      return `can be undone by ${action.compensation_tool} (${how.join(", ")})${failed}`;
    }
    case "skip":
      return "needs no undo";
    case "unrecoverable":
      return action.closes_ms === undefined
        ? "cannot be undone"
        : `cannot be undone: its undo closed at ${time(action.closes_ms)}`;
    case "unresolved":
      return "its outcome is unknown; somebody must say what happened first";
    case "unmanifested":
      return "no manifest, so no undo is known";
    case "defer":
      return `waits for step ${action.blocked_by.join(", ")}, which depends on it and stands`;
  }
}

/** What an undo would leave behind. */
export function residueOf(action: PlanAction): readonly string[] {
  return action.kind === "compensate" ? action.residue : [];
}

/** What holds a step up, in a few words for a heading. */
export function statusCounts(steps: readonly ReportStep[]): [status: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { status } of steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts];
}
