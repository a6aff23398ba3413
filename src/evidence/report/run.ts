/**
 * Facts of a run report, read once and rendered in several formats: the calls and their callers, the status of each
 * step, the rollback outlook, and the complete trail with its hashes. It contains no argument values.
 */

import { nextEventLoopTurn, runInSlices } from "../../child-process/event-loop-slices.ts";
import { undoKindText } from "../../govern/cards/undo-summary.ts";
import { effectText } from "../../govern/decide/effect-check.ts";
import type { JobDoc } from "../../govern/port/docs.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { isSealed, type RunDoc, STEP_STATUSES, type StepDoc } from "../../govern/runs/run.ts";
import { notFoundError } from "../../kernel/errors.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { loadForRollback } from "../../rollback/plan/load-run.ts";
import {
  hasConflict,
  hasFailed,
  type PlanAction,
  planRollbackPaced,
  type RollbackPlan,
} from "../../rollback/plan/plan.ts";
import type { RollbackReport } from "../../rollback/plan/report.ts";
import { countVisibleRecords } from "../../store/tenant-store.ts";
import { readingTrail } from "../bundles/run-trail.ts";
import { toIsoTime } from "./external-text.ts";

export interface ReportStep {
  step: number;
  tool: string;
  effect: string | null;
  status: string;
  reason: string | null;
  error: string | null;
  manifest_version: string | null;
  /** Null once the run's working data is deleted. */
  risk_score: number | null;
  intended_ms: number;
  finished_ms: number | null;
  /** Undone, but the declared read-back could not be run. */
  unverified: boolean;
  /** What the effect check found, in words; absent without one. */
  effect_check?: string;
  /** The manifest's sentence on the call; absent without one, and once the run's working data is deleted. */
  line?: string;
}

interface RunTerms {
  actor: string;
  acting?: readonly string[] | undefined;
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
  /** Hash of the active policy when the report was made. */
  policy: string;
  ledger: { records: number; head: string };
  /** Why the working data is unusable, so that only the trail is shown; null if it is usable. */
  without: "deleted" | "changed" | null;
  /** Null if the working data is unusable. */
  run: RunTerms | null;
  steps: ReportStep[];
  outlook: { fully_reversible: boolean; actions: PlanAction[] } | null;
  trail: LedgerRecord[];
  /** Problem with the trail; null if every hash, link and number is valid. */
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
  store: StateStore,
  run_id: string,
  context: ReportContext,
): Promise<RunReport> {
  const run = await store.get("runs", run_id);
  const { records, hash } = await store.head();
  const lines = await trailLines(store, run_id, records);
  if (run === undefined && lines.length === 0) throw notFoundError(`unknown run ${run_id}`, "unknown_run");
  const trail = await parsedLines(lines);
  // If the scope was edited in the store, show only the ledger's version of the run.
  const loaded = run === undefined || !isSealed(run) ? null : await loadForRollback(store, run_id);
  // Reports are passed on, so earlier values are shown by their size only.
  const view = { now_ms: context.now_ms, mask: true };
  const plan =
    loaded === null
      ? null
      : await runInSlices(
          planRollbackPaced(loaded.run, loaded.steps, loaded.manifests, loaded.payloads, view),
        );
  const conflicts = conflictsOf(run, await store.get("jobs", run_id));
  const changed = run !== undefined && loaded === null;
  return {
    run_id,
    generated_ms: context.now_ms,
    version: context.version,
    region: context.region,
    policy: context.policy,
    ledger: { records: await countVisibleRecords(store), head: hash },
    without: loaded !== null ? null : changed ? "changed" : "deleted",
    run: loaded === null ? null : runFacts(loaded.run),
    steps: loaded === null ? stepsOfTrail(trail) : loaded.steps.map(stepOf),
    outlook: plan === null ? null : outlookOf(plan, conflicts),
    trail,
    problem: (changed ? SEAL_BROKEN : (await runInSlices(readingTrail(lines, run_id))).problem) ?? null,
  };
}

/**
 * Steps that the last rollback left because of a conflict. A conflict writes no record, so they come from the run's
 * document, or, for runs of earlier versions, from the report of the last job.
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

/** Notes for a report that is based on the ledger only. */
export const MISSING_DATA_TEXT = {
  deleted: "The run's working data was deleted; this report is based on the ledger alone.",
  changed:
    "The run's working data was changed outside the service; this report is based on the ledger alone.",
} as const;

/** Parses a page at a time, so that other work gets a turn. */
async function parsedLines(lines: readonly string[]): Promise<LedgerRecord[]> {
  const records: LedgerRecord[] = [];
  for (let from = 0; from < lines.length; from += PAGE) {
    for (const line of lines.slice(from, from + PAGE)) records.push(JSON.parse(line) as LedgerRecord);
    await nextEventLoopTurn();
  }
  return records;
}

async function trailLines(store: StateStore, run_id: string, size: number): Promise<string[]> {
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
  const { actor, acting, mode, tenant, environment, reason, created_ms, scope } = run;
  return {
    actor,
    ...(acting === undefined ? {} : { acting }),
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
    line,
  } = doc;
  const effect_check = effectText(doc);
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
    ...(effect_check === null ? {} : { effect_check }),
    ...(line === undefined ? {} : { line }),
  };
}

/** Events that set the step status of the same name. */
const STATUSES: ReadonlySet<string> = new Set(STEP_STATUSES);
const OUTCOMES: ReadonlySet<string> = new Set(["succeeded", "failed", "uncertain"]);

/** Reconstructs the steps from the trail alone. */
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

/** Describes how a rollback would handle a step. */
export function outlookWords(action: PlanAction): string {
  switch (action.kind) {
    case "compensate": {
      const how = [
        undoKindText(action.compensation_kind),
        action.verified ? "will be read back" : "will not be read back",
        ...(action.needs_approval ? ["needs an approval"] : []),
        ...(action.closes_ms === undefined ? [] : [`until ${toIsoTime(action.closes_ms)}`]),
      ];
      if (hasConflict(action))
        return `in conflict: not undone at the last attempt, because the resource had changed since; ${action.compensation_tool} would overwrite that`;
      const failed = hasFailed(action) ? `; the last attempt failed: ${action.last_error}` : "";
      return `can be undone by ${action.compensation_tool} (${how.join(", ")})${failed}`;
    }
    case "skip":
      return "needs no undo";
    case "unrecoverable":
      return action.closes_ms === undefined
        ? "cannot be undone"
        : `cannot be undone: its undo closed at ${toIsoTime(action.closes_ms)}`;
    case "unresolved":
      return "its outcome is unknown; an operator must resolve it first";
    case "unmanifested":
      return "no manifest, so no undo is known";
    case "defer":
      return `waits for step ${action.blocked_by.join(", ")}, which depends on it and is not undone`;
  }
}

/** Effects that remain after an undo. */
export function residueOf(action: PlanAction): readonly string[] {
  return action.kind === "compensate" ? action.residue : [];
}

/** Number of steps per status, for a heading. */
export function statusCounts(steps: readonly ReportStep[]): [status: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { status } of steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts];
}
