/** Lets a surface read documents by id, as far as its view of the app shows them. Who may see one is for the caller. */

import { type ApprovalDoc, LIVE_APPROVAL_STATUSES } from "../govern/approvals/approval.ts";
import type { StoredValues } from "../govern/cards/stored-values.ts";
import { isExpired } from "../govern/expiry.ts";
import type { IncidentDoc } from "../govern/incidents/incident.ts";
import type { PlanDoc } from "../govern/plans/plan.ts";
import type { RunDoc, StepDoc } from "../govern/runs/run.ts";
import type { ServiceApp } from "./app.ts";

type DocumentSource = Pick<ServiceApp, "core">;

export function findRun({ core }: DocumentSource, run_id: string): Promise<RunDoc | undefined> {
  return core.store.get("runs", run_id);
}

export function findApproval({ core }: DocumentSource, id: string): Promise<ApprovalDoc | undefined> {
  return core.store.get("approvals", id);
}

export function findApprovalValues({ core }: DocumentSource, id: string): Promise<StoredValues | undefined> {
  return core.store.get("approval_values", id);
}

/** The newest steps of a run, newest first. */
export async function latestSteps(
  { core }: DocumentSource,
  run_id: string,
  limit: number,
): Promise<StepDoc[]> {
  const rows = await core.store.list("steps", { owner: run_id, order: "desc", limit });
  return rows.map(({ doc }) => doc);
}

export function findPlan({ core }: DocumentSource, id: string): Promise<PlanDoc | undefined> {
  return core.store.get("plans", id);
}

export function findIncident({ core }: DocumentSource, id: string): Promise<IncidentDoc | undefined> {
  return core.store.get("incidents", id);
}

export function countPendingPlans({ core }: DocumentSource): Promise<number> {
  return core.store.count("plans", { tag: "pending" });
}

/** Counts the requests that approvers can decide, without those of the probe. */
export async function countOpenRequests({ core }: DocumentSource): Promise<number> {
  const counts = await Promise.all([
    core.store.count("approvals", { tag: "pending" }),
    core.store.count("approvals", { tag: "escalated" }),
  ]);
  return counts[0] + counts[1];
}

const LIVE_TAGS = [...LIVE_APPROVAL_STATUSES];
const MAX_REQUESTS = 1_000;

/** Requests that can still lead to their call: those of a run, or the newest of all runs. */
export async function liveCallRequests({ core }: DocumentSource, run_id?: string): Promise<ApprovalDoc[]> {
  const range = run_id === undefined ? ({ order: "desc" } as const) : { owner: run_id };
  const rows = await core.store.list("approvals", { ...range, tag: LIVE_TAGS, limit: MAX_REQUESTS });
  const now = core.env.now();
  return rows.map(({ doc }) => doc).filter((doc) => isLive(doc, now));
}

function isLive(request: ApprovalDoc, now: number): boolean {
  return request.kind === "call" && LIVE_APPROVAL_STATUSES.has(request.status) && !isExpired(request, now);
}
