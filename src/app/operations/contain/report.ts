/** What a containment says, before it and after it: one shape, so that what was foretold can be compared. */
import * as z from "zod";
import type { Json } from "../../../kernel/json.ts";
import {
  type CompensateAction,
  hasConflict,
  type PlanAction,
  type RollbackPlan,
} from "../../../rollback/plan.ts";
import type { RollbackReport } from "../../../rollback/report.ts";
import { nullable } from "../schemas.ts";

const strings = z.array(z.string());

const keyLine = z.strictObject({ name: z.string(), fingerprint: z.string() });
const stepLine = z.strictObject({ step: z.int(), tool: z.string() });
const leftLine = z.strictObject({ step: z.int(), tool: z.string(), why: z.string() });

const runContainment = z.strictObject({
  run_id: z.string(),
  actor: z.string(),
  tenant: nullable(z.string()),
  undone: z.array(stepLine).meta({ description: "newest first" }),
  cannot: z.array(leftLine).meta({ description: "what stays as it is, and why" }),
  unknown: z.array(leftLine).meta({ description: "what nobody knows the state of, and why" }),
  bundle: nullable(z.string()).meta({ description: "the file of its signed bundle" }),
  error: nullable(z.string()),
});

export const containReport = z.strictObject({
  actors: strings,
  halt: z.strictObject({
    id: nullable(z.string()),
    was_there: z.boolean().meta({ description: "whether the actor was halted already" }),
  }),
  keys: z.strictObject({
    disabled: z.array(keyLine),
    left: z.array(z.strictObject({ ...keyLine.shape, why: z.string() })),
    note: nullable(z.string()),
  }),
  requests: z.strictObject({
    denied: strings,
    approved: strings.meta({ description: "approved before and unused; the halt holds them" }),
  }),
  revoked: z.strictObject({ plans: strings, delegations: strings, grants: strings }),
  wider: z
    .array(z.strictObject({ kind: z.string(), id: z.string(), covers: z.string() }))
    .meta({ description: "what covers more than those who are contained, and is left for a person" }),
  rollback: z.enum(["yes", "no", "no_compensator"]),
  runs: z.array(runContainment),
  bundles: z.strictObject({ folder: nullable(z.string()), note: nullable(z.string()) }),
  undone: z.int(),
  left: z.int(),
  complete: z.boolean(),
});

export type ContainReport = z.infer<typeof containReport>;
export type RunContainment = z.infer<typeof runContainment>;
type LeftLine = z.infer<typeof leftLine>;

export const NO_SIGNING_KEY = "no bundles: no signing key is configured (SVC_SIGNING_KEY)";
const NO_ROLLBACK = {
  no: "left standing: no rollback was asked for",
  no_compensator: "left standing: no compensator is configured here (SVC_COMPENSATOR_CMD)",
} as const;

/** The counts and the verdict follow from the rest. */
export function summed(
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
const UNRESOLVED = "its outcome is unknown; say what happened with svc resolve";
const waitsFor = (blocked_by: readonly number[]): string => `waits for step ${blocked_by.join(", ")}`;

const CHANGED_SINCE = "conflict: what is there now is not what the call left";
const UNSEEN = "conflict: not checked, since what is there now could not be read";

/** What a preview knows of an undo beyond its plan. */
export interface UndoProspect {
  /** A person has approved it. */
  consented: boolean;
  /** Why nothing here can run it; null where something can. */
  unavailable: string | null;
}

/** Why an undo that is possible would be left; null where it would be done. */
export function whyLeft(action: CompensateAction, { consented, unavailable }: UndoProspect): string | null {
  if (unavailable !== null) return `nothing here can undo it: ${unavailable}`;
  if (hasConflict(action)) return CHANGED_SINCE;
  if (action.before !== undefined && action.is === undefined) return UNSEEN;
  return action.needs_approval && !consented ? "its undo needs a person's approval" : null;
}

/** What a rollback of the run would leave, from its plan. */
export function foretold(
  run: RunName,
  plan: RollbackPlan,
  rollback: ContainReport["rollback"],
  prospectOf: (action: CompensateAction) => UndoProspect,
): RunContainment {
  const told: RunContainment = { ...run, undone: [], cannot: [], unknown: [], bundle: null, error: null };
  for (const action of plan.actions) {
    if (action.kind === "skip") continue;
    const { step, tool } = action;
    if (action.kind === "unresolved") told.unknown.push({ step, tool, why: UNRESOLVED });
    else if (action.kind === "defer") told.cannot.push({ step, tool, why: waitsFor(action.blocked_by) });
    else if (action.kind !== "compensate") told.cannot.push({ step, tool, why: WHY[action.kind] });
    else {
      const why = rollback === "yes" ? whyLeft(action, prospectOf(action)) : NO_ROLLBACK[rollback];
      if (why === null) told.undone.push({ step, tool });
      else told.cannot.push({ step, tool, why });
    }
  }
  return told;
}

/** What the rollback of the run did and left. */
export function undoneIn(
  run: RunName,
  report: RollbackReport,
  toolOf: (step: number) => string,
): RunContainment {
  const line = (step: number, why: string): LeftLine => ({ step, tool: toolOf(step), why });
  const cannot = [
    ...report.failed.map(({ step, error }) => line(step, error)),
    ...report.unrecoverable.map((step) => line(step, WHY.unrecoverable)),
    ...report.unmanifested.map((step) => line(step, WHY.unmanifested)),
    ...report.deferred.map(({ step, blocked_by }) => line(step, waitsFor(blocked_by))),
    ...report.awaiting_approval.map((step) => line(step, "its undo awaits a person's approval")),
  ];
  const unknown = [
    ...report.unresolved.map((step) => line(step, UNRESOLVED)),
    ...report.unverified.map((step) => line(step, "undone, but not read back")),
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

/** What a report left that a person can still settle. What was undone without being read back stays so. */
const openIn = ({ runs }: ContainReport): string[] =>
  runs.flatMap(({ run_id, cannot, unknown }) => [
    ...cannot.map(({ step }) => `${run_id} ${step} cannot`),
    ...unknown.filter(({ why }) => why === UNRESOLVED).map(({ step }) => `${run_id} ${step} unknown`),
  ]);

/** Whether all that the earlier report left is left still, so that its word holds. */
export function stillLeft(earlier: ContainReport, now: ContainReport): boolean {
  const open = new Set(openIn(now));
  return openIn(earlier).every((line) => open.has(line));
}

export const asJson = (report: ContainReport): Json => report as unknown as Json;
