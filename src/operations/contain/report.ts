/** The containment report. The preview and the result share one shape, so they can be compared. */

import * as z from "zod";
import type { JsonValue } from "../../kernel/json/json.ts";
import { asJson } from "../../kernel/json/json.ts";
import { closedText } from "../../rollback/plan/classify.ts";
import {
  type CompensateAction,
  hasConflict,
  type PlanAction,
  type RollbackPlan,
} from "../../rollback/plan/plan.ts";
import type { RollbackReport } from "../../rollback/plan/report.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { TRACE_KINDS } from "../../rules/trace/fingerprint-map.ts";

/** A call that was built on another one. Names kinds of values, never a value. */
export const dependentShape = z.strictObject({
  run_id: z.string(),
  step: z.int(),
  tool: z.string(),
  kind: z.enum(["compensate", "skip", "unrecoverable", "unresolved", "unmanifested"]),
  because: z.array(
    z.strictObject({
      run_id: z.string(),
      step: z.int(),
      kind: z.enum([...TRACE_KINDS, "stored", "resource", "dependency"]),
      path: z.string().optional(),
    }),
  ),
});

const strings = z.array(z.string());

const keyLine = z.strictObject({ name: z.string(), fingerprint: z.string() });
const stepLine = z.strictObject({ step: z.int(), tool: z.string() });
const leftLine = z.strictObject({ step: z.int(), tool: z.string(), why: z.string() });

const runContainment = z.strictObject({
  run_id: z.string(),
  actor: z.string(),
  tenant: nullableSchema(z.string()),
  undone: z.array(stepLine).meta({ description: "newest first" }),
  cannot: z.array(leftLine).meta({ description: "steps that are not undone, and why" }),
  unknown: z.array(leftLine).meta({ description: "steps with an unknown state, and why" }),
  bundle: nullableSchema(z.string()).meta({ description: "path of its signed bundle" }),
  error: nullableSchema(z.string()),
});

const differenceLine = z.strictObject({
  run_id: z.string(),
  step: z.int(),
  tool: z.string(),
  promised: z.string(),
  happened: z.string(),
});

export const containReport = z.strictObject({
  actors: strings,
  halt: z.strictObject({
    id: nullableSchema(z.string()),
    was_there: z.boolean().meta({ description: "whether the actor was halted already" }),
  }),
  keys: z.strictObject({
    disabled: z.array(keyLine),
    left: z.array(z.strictObject({ ...keyLine.shape, why: z.string() })),
    note: nullableSchema(z.string()),
  }),
  requests: z.strictObject({
    denied: strings,
    approved: strings.meta({ description: "approved earlier and unused; the halt blocks them" }),
  }),
  revoked: z.strictObject({ plans: strings, delegations: strings, grants: strings }),
  wider: z
    .array(z.strictObject({ kind: z.string(), id: z.string(), covers: z.string() }))
    .meta({ description: "authority that also covers other actors; it is left for an admin to decide" }),
  rollback: z.enum(["yes", "no", "no_compensator"]),
  runs: z.array(runContainment),
  dependents: z.array(dependentShape).optional().meta({
    description: "calls of other runs that were built on the undone ones; they are left for you to decide",
  }),
  bundles: z.strictObject({ folder: nullableSchema(z.string()), note: nullableSchema(z.string()) }),
  differences: z
    .array(differenceLine)
    .optional()
    .meta({ description: "steps that ended otherwise than previewed; absent where nothing was rolled back" }),
  undone: z.int(),
  left: z.int(),
  complete: z.boolean(),
});

export type ContainReport = z.infer<typeof containReport>;
export type RunContainment = z.infer<typeof runContainment>;
type LeftLine = z.infer<typeof leftLine>;

export const NO_SIGNING_KEY = "no bundles: no signing key is configured (SVC_SIGNING_KEY)";
const NO_ROLLBACK = {
  no: "not undone: no rollback was requested",
  no_compensator: "not undone: no compensator is configured here (SVC_COMPENSATOR_CMD)",
} as const;

/** Adds the counts and the verdict. */
export function withTotals(
  report: Omit<ContainReport, "undone" | "left" | "complete">,
  undisturbed = true,
): ContainReport {
  const { runs } = report;
  const count = (of: (run: RunContainment) => number) => runs.reduce((sum, run) => sum + of(run), 0);
  const left = count((run) => run.cannot.length + run.unknown.length);
  const broken = runs.some((run) => run.error !== null);
  return {
    ...report,
    undone: count((run) => run.undone.length),
    left,
    complete: left === 0 && !broken && undisturbed,
  };
}

type RunName = Pick<RunContainment, "run_id" | "actor" | "tenant">;

const WHY: Record<Exclude<PlanAction["kind"], "compensate" | "skip" | "defer" | "unresolved">, string> = {
  unrecoverable: "cannot be undone",
  unmanifested: "no manifest, so no undo is known",
};
const UNRESOLVED = "its outcome is unknown; set it with svc resolve";
const waitsFor = (blocked_by: readonly number[]): string => `waits for step ${blocked_by.join(", ")}`;

const CHANGED_SINCE = "conflict: the resource has changed since the call";
const UNSEEN = "conflict: not checked, because the current state could not be read";
const NOT_READ_BACK = "undone, but not read back";

/** Facts about an undo that its plan does not contain. */
export interface UndoProspect {
  /** Whether the undo is approved. */
  consented: boolean;
  /** Why no tool here can run the undo, or null. */
  unavailable: string | null;
  /** Whether it is read back, where its manifest says how: not without a reader, and not by a tool that is away. */
  read_back: "possible" | "no_reader" | { unavailable: string };
}

/** Why a possible undo would be skipped; null if it would run. */
export function skipReason(
  action: CompensateAction,
  { consented, unavailable, read_back }: UndoProspect,
): string | null {
  if (unavailable !== null) return `nothing here can undo it: ${unavailable}`;
  if (hasConflict(action)) return CHANGED_SINCE;
  if (action.before !== undefined && action.is === undefined) return UNSEEN;
  if (action.needs_approval && !consented) return "its undo requires approval";
  if (action.verified && typeof read_back === "object")
    return `its undo cannot be read back: ${read_back.unavailable}`;
  return null;
}

/** An undo that was possible until its deadline is not reported as one that never was. */
function whyLost({ kind, closes_ms }: { kind: keyof typeof WHY; closes_ms?: number | undefined }): string {
  return kind === "unrecoverable" && closes_ms !== undefined ? closedText(closes_ms) : WHY[kind];
}

/** Predicts a run's entry of the report from its rollback plan. */
export function predictedLeftovers(
  run: RunName,
  plan: RollbackPlan,
  rollback: ContainReport["rollback"],
  prospectOf: (action: CompensateAction) => UndoProspect,
): RunContainment {
  const predicted: RunContainment = {
    ...run,
    undone: [],
    cannot: [],
    unknown: [],
    bundle: null,
    error: null,
  };
  for (const action of plan.actions) {
    if (action.kind === "skip") continue;
    const { step, tool } = action;
    if (action.kind === "unresolved") predicted.unknown.push({ step, tool, why: UNRESOLVED });
    else if (action.kind === "defer") predicted.cannot.push({ step, tool, why: waitsFor(action.blocked_by) });
    else if (action.kind !== "compensate")
      predicted.cannot.push({ step, tool, why: whyLost({ kind: action.kind, closes_ms: action.closes_ms }) });
    else {
      const prospect = prospectOf(action);
      const why = rollback === "yes" ? skipReason(action, prospect) : NO_ROLLBACK[rollback];
      if (why !== null) predicted.cannot.push({ step, tool, why });
      else predicted.undone.push({ step, tool });
      if (why === null && action.verified && prospect.read_back === "no_reader")
        predicted.unknown.push({ step, tool, why: NOT_READ_BACK });
    }
  }
  return predicted;
}

/** The tool of a step, and the deadline of its undo if that has passed. */
export interface StepFacts {
  tool: string;
  closed_ms: number | undefined;
}

/** A run's entry of the report, from its rollback report. */
export function runResult(
  run: RunName,
  report: RollbackReport,
  factsOf: (step: number) => StepFacts,
): RunContainment {
  const toolOf = (step: number) => factsOf(step).tool;
  const line = (step: number, why: string): LeftLine => ({ step, tool: toolOf(step), why });
  const cannot = [
    ...report.failed.map(({ step, error }) => line(step, error)),
    ...report.unrecoverable.map((step) =>
      line(step, whyLost({ kind: "unrecoverable", closes_ms: factsOf(step).closed_ms })),
    ),
    ...report.unmanifested.map((step) => line(step, WHY.unmanifested)),
    ...report.deferred.map(({ step, blocked_by }) => line(step, waitsFor(blocked_by))),
    ...report.awaiting_approval.map((step) => line(step, "its undo awaits approval")),
  ];
  const unknown = [
    ...report.unresolved.map((step) => line(step, UNRESOLVED)),
    ...report.unverified.map((step) => line(step, NOT_READ_BACK)),
  ];
  const newestFirst = (a: LeftLine, b: LeftLine) => b.step - a.step;
  return {
    ...run,
    undone: report.compensated.map((step) => ({ step, tool: toolOf(step) })),
    cannot: cannot.sort(newestFirst),
    unknown: unknown.sort(newestFirst),
    bundle: null,
    error: null,
  };
}

type StepFate = { kind: "undone" | "unverified" | "stays" | "unknown"; tool: string; text: string };

function fatesIn({ undone, cannot, unknown }: RunContainment): Map<number, StepFate> {
  const fates = new Map<number, StepFate>();
  for (const { step, tool } of undone) fates.set(step, { kind: "undone", tool, text: "undone" });
  for (const { step, tool, why } of cannot) fates.set(step, { kind: "stays", tool, text: why });
  for (const { step, tool, why } of unknown)
    fates.set(step, { kind: why === NOT_READ_BACK ? "unverified" : "unknown", tool, text: why });
  return fates;
}

/** Steps whose undo ended differently from the preview. Steps that another rollback undid in the meantime are left out. */
export function differencesFrom(
  promised: readonly RunContainment[],
  happened: readonly RunContainment[],
): NonNullable<ContainReport["differences"]> {
  const previews = new Map(promised.map((run) => [run.run_id, fatesIn(run)]));
  return happened.flatMap((run) => {
    const preview = previews.get(run.run_id);
    return [...fatesIn(run)].flatMap(([step, { kind, tool, text }]) => {
      const before = preview?.get(step);
      if (before === undefined || before.kind === kind) return [];
      return [{ run_id: run.run_id, step, tool, promised: before.text, happened: text }];
    });
  });
}

/** Leftovers that an operator can still settle. A step undone without verification stays as it is. */
const openIn = ({ runs }: ContainReport): string[] =>
  runs.flatMap(({ run_id, cannot, unknown }) => [
    ...cannot.map(({ step }) => `${run_id} ${step} cannot`),
    ...unknown.filter(({ why }) => why === UNRESOLVED).map(({ step }) => `${run_id} ${step} unknown`),
  ]);

/** Whether every leftover of the earlier report still exists, so that the report is still accurate. */
export function hasSameLeftovers(earlier: ContainReport, now: ContainReport): boolean {
  const open = new Set(openIn(now));
  return openIn(earlier).every((line) => open.has(line));
}

export const reportAsJson = (part: ContainReport | RunContainment[]): JsonValue => asJson(part);
