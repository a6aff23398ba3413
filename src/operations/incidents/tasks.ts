/**
 * Remaining work of an incident, as tasks: each with the command and the console page that does it. Tasks are computed
 * from the state at the time of reading, so a task disappears as soon as it is done, on any surface.
 */

import { approvalTags } from "../../govern/approvals/approval.ts";
import { HALTS_KEY, stepKey } from "../../govern/document-keys.ts";
import { isExpired } from "../../govern/expiry.ts";
import type { IncidentCauseDoc, IncidentDoc } from "../../govern/incidents/incident.ts";
import { PROBE_KEY, type ProbeState } from "../../govern/port/docs.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { PrincipalRole } from "../../govern/roles.ts";
import type { RunDoc, SkipReason, StepDoc } from "../../govern/runs/run.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { tenantOf } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import type { ContainReport } from "../contain/report.ts";
import { isKeyShown } from "../pipeline/access.ts";

const INCIDENT_TASKS = {
  resolve: "Resolve an outcome",
  undo: "Undo a step",
  approve: "Decide an approval for an undo",
  conflict: "Settle a conflict",
  lift: "Lift a halt",
  enable: "Enable a key",
  probe: "Run the probe again",
  review: "Review calls without a decision",
} as const;
export type IncidentTaskKind = keyof typeof INCIDENT_TASKS;

/** The least role that can do a task. An approval may also ask for a group. */
const TASK_ROLES: Readonly<Record<IncidentTaskKind, PrincipalRole>> = {
  resolve: "operator",
  undo: "operator",
  approve: "approver",
  conflict: "operator",
  lift: "admin",
  enable: "admin",
  probe: "operator",
  review: "operator",
};

/** `id` is the request, halt or key fingerprint; `page` is a path of the console. */
export interface IncidentTask {
  kind: IncidentTaskKind;
  /** The least role that can do it. */
  role: PrincipalRole;
  text: string;
  run_id: string | null;
  step: number | null;
  id: string | null;
  command: string;
  page: string;
}

/** The task in words, with the role that it needs. */
export function incidentTaskTitle({ kind, role }: Pick<IncidentTask, "kind" | "role">): string {
  return `${INCIDENT_TASKS[kind]} (${role})`;
}

/** Everything that is known of an incident besides its document. */
export interface IncidentContext {
  incident: IncidentDoc;
  causes: readonly IncidentCauseDoc[];
}

export async function incidentTasks(app: ServiceApp, context: IncidentContext): Promise<IncidentTask[]> {
  const { incident } = context;
  const tasks: IncidentTask[] = [];
  const contained = context.causes.some(({ kind }) => kind === "containment" || kind === "halt");
  for (const run_id of incident.runs) {
    const run = await app.core.store.get("runs", run_id);
    if (run !== undefined) tasks.push(...(await runTasks(app, run, contained)));
  }
  tasks.push(...(await haltTasks(app, context)), ...(await keyTasks(app, context)));
  tasks.push(...(await probeTasks(app, context)), ...reviewTasks(context));
  return tasks;
}

const runPage = (run_id: string, step?: number): string =>
  `/console/runs/${encodeURIComponent(run_id)}${step === undefined ? "" : `#step-${step}`}`;

async function runTasks(app: ServiceApp, run: RunDoc, contained: boolean): Promise<IncidentTask[]> {
  const { open, uncertain, compensation_failed, awaiting, undo_left, run_id } = run;
  const tasks: IncidentTask[] = [];
  if (open + uncertain > 0) tasks.push(...(await outcomeTasks(app, run, contained)));
  const why = new Map<number, SkipReason>();
  for (const left of undo_left?.steps ?? []) why.set(left.step, left.why);
  if (compensation_failed > 0)
    for await (const { doc } of allRows(app.core.store, "steps", {
      owner: run_id,
      tag: "compensation_failed",
    }))
      if (!why.has(doc.step)) why.set(doc.step, "failed");
  for (const [step, reason] of [...why].sort(([a], [b]) => b - a)) tasks.push(undoTask(run_id, step, reason));
  if (awaiting > 0) tasks.push(...(await approvalTasks(app, run_id)));
  if (undo_left?.unfinished === true && tasks.length === 0)
    tasks.push({
      ...named("undo", "A rollback is unfinished", run_id, null),
      command: `svc rollback ${run_id}`,
      page: runPage(run_id),
    });
  return tasks;
}

function named(kind: IncidentTaskKind, text: string, run_id: string | null, step: number | null) {
  return { kind, role: TASK_ROLES[kind], text, run_id, step, id: null };
}

/** Of an agent that was stopped, an open call counts at once: its agent may never report it. */
async function outcomeTasks(
  { core }: ServiceApp,
  { run_id }: RunDoc,
  contained: boolean,
): Promise<IncidentTask[]> {
  const tasks: IncidentTask[] = [];
  const late = (step: StepDoc) =>
    contained ||
    step.status === "uncertain" ||
    core.env.now() - step.intended_ms > SERVICE_LIMITS.unresolved_after_ms;
  const tag = ["intended", "uncertain"];
  for await (const { doc } of allRows(core.store, "steps", { owner: run_id, tag })) {
    if (!late(doc)) continue;
    const { step, tool } = doc;
    tasks.push({
      ...named("resolve", `Did ${tool} take effect? Its outcome is unknown.`, run_id, step),
      command: `svc resolve ${run_id} ${step}`,
      page: runPage(run_id, step),
    });
  }
  return tasks;
}

const LEFT_TEXT: Record<SkipReason, string> = {
  conflict: "was changed since the call by another writer",
  deferred: "waits for newer steps that are not undone",
  failed: "could not be undone",
  unverified: "is undone, but was not read back",
};

function undoTask(run_id: string, step: number, why: SkipReason): IncidentTask {
  const text = `Step ${step} ${LEFT_TEXT[why]}.`;
  if (why !== "conflict") return retryTask(run_id, step, text);
  return {
    ...named("conflict", text, run_id, step),
    command: `svc rollback ${run_id} --overwrite ${step}`,
    page: `${runPage(run_id)}#rollback`,
  };
}

const retryTask = (run_id: string, step: number, text: string): IncidentTask => ({
  ...named("undo", text, run_id, step),
  command: `svc rollback ${run_id}`,
  page: runPage(run_id, step),
});

/** Undos that need an approval: one that is pending, has expired, or was given without the undo being done. */
async function approvalTasks({ core }: ServiceApp, run_id: string): Promise<IncidentTask[]> {
  const tasks: IncidentTask[] = [];
  const tag = approvalTags(["pending", "escalated", "approved", "expired"]);
  for await (const { doc } of allRows(core.store, "approvals", { owner: run_id, tag })) {
    if (doc.kind !== "compensation" || doc.step === null) continue;
    const step = await core.store.get("steps", stepKey(run_id, doc.step));
    if (step?.status !== "succeeded" || step.undo_request !== doc.id) continue;
    if (doc.status === "expired" || isExpired(doc, core.env.now()))
      tasks.push(
        retryTask(
          run_id,
          doc.step,
          `Step ${doc.step}: the approval of its undo expired. Roll back to ask again.`,
        ),
      );
    else if (doc.status === "approved")
      tasks.push(retryTask(run_id, doc.step, `Step ${doc.step}: its undo is approved, and not done.`));
    else
      tasks.push({
        ...named("approve", `The undo of step ${doc.step} waits for approval.`, run_id, doc.step),
        id: doc.id,
        command: `svc approvals approve ${doc.id}`,
        page: `/console/approvals/${doc.id}`,
      });
  }
  return tasks;
}

async function haltTasks(app: ServiceApp, { causes }: IncidentContext): Promise<IncidentTask[]> {
  const { store } = app.core;
  const ids = new Set<string>();
  for (const { kind, ref } of causes) {
    if (kind === "halt") ids.add(ref);
    if (kind !== "containment") continue;
    const job = await store.get("containments", ref);
    if (job !== undefined) ids.add(job.halt_id);
  }
  const { active = [] } = (await store.get("halts", HALTS_KEY)) ?? {};
  return active
    .filter(({ id }) => ids.has(id))
    .map(({ id, reason }) => ({
      ...named("lift", `A halt is in effect: ${reason}`, null, null),
      id,
      command: `svc halt lift ${id}`,
      page: "/console/evidence#halt",
    }));
}

/** Keys that a containment disabled and that are still disabled. Without a readable key file, all of them may be. */
async function keyTasks(app: ServiceApp, { causes }: IncidentContext): Promise<IncidentTask[]> {
  const { core, keys } = app;
  const disabled = new Map<string, string>();
  for (const { kind, ref } of causes) {
    if (kind !== "containment") continue;
    const job = await core.store.get("containments", ref);
    const report = (job?.report ?? null) as ContainReport | null;
    for (const { fingerprint, name } of report?.keys.disabled ?? []) disabled.set(fingerprint, name);
  }
  if (disabled.size === 0) return [];
  const entries = await keys?.list().catch(() => undefined);
  const isDisabled = (fingerprint: string) =>
    entries === undefined
      ? tenantOf(core.store) === null
      : entries.some((one) => one.fingerprint === fingerprint && one.disabled && isKeyShown(app, one));
  return [...disabled]
    .filter(([fingerprint]) => isDisabled(fingerprint))
    .map(([fingerprint, name]) => ({
      ...named("enable", `The key ${name} is disabled. Enable it, or delete it.`, null, null),
      id: fingerprint,
      command: `svc keys enable ${fingerprint}`,
      page: "/console/settings#keys",
    }));
}

/** Nothing here shows what such calls did, so the task stays until a person closes the incident. */
function reviewTasks({ incident, causes }: IncidentContext): IncidentTask[] {
  return causes
    .filter(({ kind }) => kind === "ungoverned")
    .map(({ run_id, text }) => ({
      ...named("review", `${text}. Find out what they did.`, run_id, null),
      command: `svc incidents close ${incident.id}`,
      page: run_id === null ? "/console/alerts" : runPage(run_id),
    }));
}

async function probeTasks({ core }: ServiceApp, { causes }: IncidentContext): Promise<IncidentTask[]> {
  if (!causes.some(({ kind }) => kind === "probe")) return [];
  const last = (await core.store.get("meta", PROBE_KEY)) as ProbeState | undefined;
  return (last?.broken ?? []).map((guarantee) => ({
    ...named("probe", `A guarantee does not hold: ${guarantee}`, null, null),
    command: "svc probe",
    page: "/console/alerts",
  }));
}
