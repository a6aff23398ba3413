/**
 * Runs a containment as a background job. The halt is active before the response is sent; the rest continues under a
 * lease, and another process resumes an abandoned job. Each scope has at most one containment at a time.
 */
import { HALT_FIELDS, type StoredHalt } from "../../govern/approvals/approval.ts";
import type { EngineCore } from "../../govern/core.ts";
import { HALTS_KEY } from "../../govern/document-keys.ts";
import { haltUnit } from "../../govern/halts/halts.ts";
import { incidentNeeds } from "../../govern/incidents/join-incident.ts";
import {
  dropLease,
  LeaseLostError,
  type LeaseSubject,
  leaseKey,
  releaseLease,
  startHeartbeat,
  tryLease,
  type WorkLease,
} from "../../govern/lease.ts";
import type { ContainmentDoc } from "../../govern/port/docs.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import type { ResolvePrincipal, StoredPrincipal } from "../../govern/roles.ts";
import { conflictError, messageOf, notFoundError, SvcError } from "../../kernel/errors.ts";
import { valueHash } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { joinOnContainment, type NamedSubject } from "../incidents/subjects.ts";
import { appFor } from "../pipeline/access.ts";
import { ContainmentWork, describeScope } from "./phases.ts";
import type { ContainReport } from "./report.ts";
import type { ContainmentScope } from "./scope.ts";

interface ContainInput extends ContainmentScope {
  reason: string;
  by: string;
  authority?: StoredPrincipal | undefined;
  rollback: ContainmentDoc["rollback"];
  actors: string[];
  /** The agents whose incidents it opens or joins. */
  subjects: readonly NamedSubject[];
}

const subjectOf = (id: string): LeaseSubject => ({ key: `contain/${id}`, what: `containment ${id}` });
/** Key under which the id of the scope's last containment is stored. */
const scopeKey = ({ actor, tenant }: Pick<ContainmentScope, "actor" | "tenant">): string =>
  `containment/${valueHash({ actor, tenant })}`;

interface Begun {
  job: ContainmentDoc;
  /** Null if another process works on it. */
  lease: WorkLease | null;
  records: LedgerRecord[];
}

/** The last containment of this scope, or undefined. */
export async function lastContainment(core: EngineCore, scope: Pick<ContainmentScope, "actor" | "tenant">) {
  const id = await core.store.get("meta", scopeKey(scope));
  return typeof id === "string" ? core.store.get("containments", id) : undefined;
}

/**
 * Starts a containment, or resumes the one in progress for the same scope. Once it resolves, no matching agent is
 * allowed another call. Resolves to null if `last`, the caller's reading of the last containment, is outdated. The
 * caller then reads again, because a report may exist. So two callers never start from the same reading.
 */
export async function startContainment(
  app: ServiceApp,
  input: ContainInput,
  today: ResolvePrincipal | undefined,
  last: ContainmentDoc | undefined,
): Promise<ContainmentDoc | null> {
  const { core } = app;
  const fresh = `ctn_${core.env.uuid()}`;
  const holder = `contain/${core.env.uuid()}`;
  const begun = await core.store.transact({
    needs: [["meta", scopeKey(input)], ["halts", HALTS_KEY], ...incidentNeeds(input.subjects)],
    run(tx: StoreTx): Begun | null {
      const there = goOn(core, tx, input, holder);
      if (there !== null) return there;
      const isLast = tx.get("meta", scopeKey(input)) === last?.id && last?.state !== "running";
      return isLast ? begin(core, tx, input, fresh, holder) : null;
    },
  });
  if (begun === null) return null;
  announceRecords(core.listeners, begun.records);
  if (begun.lease !== null) app.background.track(work(app, begun.job, begun.lease, today));
  return begun.job;
}

function goOn(core: EngineCore, tx: StoreTx, input: ContainInput, holder: string): Begun | null {
  const id = tx.get("meta", scopeKey(input));
  const job = typeof id === "string" ? tx.get("containments", id) : undefined;
  if (job?.state !== "running") return null;
  const sameReach = job.authority?.tenant === input.authority?.tenant;
  if (!sameReach || (job.rollback === "no") !== (input.rollback === "no"))
    throw conflictError(
      "containment_differs",
      `containment ${job.id} of ${describeScope(job)} is in progress with other options; wait until it has ended`,
    );
  const may = job.rollback !== "yes" || input.rollback === "yes";
  const lease = may ? tryLease(core, tx, subjectOf(job.id), holder) : null;
  return { job, lease, records: [] };
}

function begin(core: EngineCore, tx: StoreTx, input: ContainInput, id: string, holder: string): Begun {
  const { actor, tenant, since_ms, by, authority, rollback, actors } = input;
  const reason = core.redact(input.reason);
  const now = core.env.now();
  const there = (tx.get("halts", HALTS_KEY)?.active ?? []).find((halt) => covers(halt, input));
  const since_seq = tx.head.records;
  const { halt, records } =
    there === undefined
      ? haltUnit(core, by, { actor, tenant, reason }).run(tx)
      : { halt: there, records: [] };
  const job: ContainmentDoc = {
    id,
    state: "running",
    started_ms: now,
    finished_ms: null,
    by,
    authority,
    actor,
    tenant,
    since_ms,
    reason,
    rollback,
    actors,
    halt_id: halt.id,
    halt_was_there: there !== undefined,
    since_seq,
    phase: "keys",
    keys: null,
    denied: [],
    revoked: { plans: [], delegations: [], grants: [] },
    report: null,
    error: null,
  };
  tx.put("containments", id, job);
  tx.put("meta", scopeKey(input), id);
  joinOnContainment(core, tx, job, input.subjects);
  const lease = tryLease(core, tx, subjectOf(id), holder);
  return { job, lease, records };
}

/** Whether this is exactly the halt of the containment. A halt limited to some tools does not count. */
function covers(halt: StoredHalt, { actor, tenant }: ContainmentScope): boolean {
  const wanted = { tool: null, actor, tenant, environment: null };
  return halt.literal !== true && HALT_FIELDS.every((field) => halt.scope[field] === wanted[field]);
}

export async function isHalted(core: EngineCore, { halt_id }: ContainmentDoc): Promise<boolean> {
  const { active = [] } = (await core.store.get("halts", HALTS_KEY)) ?? {};
  return active.some(({ id }) => id === halt_id);
}

export async function findActiveHalt(
  core: EngineCore,
  scope: ContainmentScope,
): Promise<StoredHalt | undefined> {
  const { active = [] } = (await core.store.get("halts", HALTS_KEY)) ?? {};
  return active.find((halt) => covers(halt, scope));
}

/**
 * Resumes an abandoned containment. Returns false if it has ended, another process works on it, or this process cannot
 * undo.
 */
export async function resumeContainment(
  app: ServiceApp,
  id: string,
  today: ResolvePrincipal | undefined,
): Promise<boolean> {
  const { core } = app;
  const holder = `contain/${core.env.uuid()}`;
  const taken = await core.store.transact({
    needs: [["containments", id], leaseKey(subjectOf(id))],
    run(tx: StoreTx) {
      const job = tx.get("containments", id);
      if (job?.state !== "running" || (job.rollback === "yes" && app.jobTools === null)) return null;
      const lease = tryLease(core, tx, subjectOf(id), holder);
      return lease && { job, lease };
    },
  });
  if (taken === null) return false;
  app.background.track(work(app, taken.job, taken.lease, today));
  return true;
}

/** Resumes every containment whose process is gone. */
export async function resumeContainments(
  app: ServiceApp,
  today: ResolvePrincipal | undefined,
): Promise<void> {
  const rows = await app.core.store.list("containments", { tag: "running", limit: SERVICE_LIMITS.page_max });
  for (const { key } of rows) await resumeContainment(app, key, today);
}

async function work(
  within: ServiceApp,
  job: ContainmentDoc,
  lease: WorkLease,
  today: ResolvePrincipal | undefined,
): Promise<void> {
  // In any process, the containment reaches only as far as the admin who started it.
  const tenant = job.authority?.tenant ?? null;
  const app = appFor(within, { tenant, tenant_only: tenant !== null });
  const { core } = app;
  const heartbeat = startHeartbeat(core, lease);
  try {
    await new ContainmentWork(app, job, lease, heartbeat.lost, today).run();
  } catch (error) {
    app.log.warn("a containment broke off", { id: job.id, error: core.redact(messageOf(error)) });
    await brokenOff(core, job.id, lease, error).catch(() => {});
  } finally {
    await heartbeat.stop();
  }
}

/**
 * Leaves an interrupted containment, or one that lost its store, to be resumed. Any other error ends it; the halt
 * stays.
 */
async function brokenOff(core: EngineCore, id: string, lease: WorkLease, error: unknown): Promise<void> {
  if (error instanceof LeaseLostError) return;
  if (error instanceof SvcError && error.code === "unavailable") return releaseLease(core, lease);
  await core.store.transact({
    needs: [["containments", id], leaseKey(lease.subject)],
    run(tx: StoreTx) {
      dropLease(tx, lease);
      const job = tx.get("containments", id)!;
      const ended = {
        state: "failed",
        finished_ms: core.env.now(),
        error: core.redact(messageOf(error)),
      } as const;
      tx.put("containments", id, { ...job, ...ended });
    },
  });
}

const LISTED = 100;

/** Recent containments, newest first. */
export async function listContainments({ store }: Pick<EngineCore, "store">): Promise<ContainmentDoc[]> {
  return (await store.list("containments", { order: "desc", limit: LISTED })).map(({ doc }) => doc);
}

export async function getContainment(core: EngineCore, id: string): Promise<ContainmentDoc> {
  const job = await core.store.get("containments", id);
  if (job === undefined) throw notFoundError(`unknown containment ${id}`, "unknown_job");
  return job;
}

/** Response fields of a containment. The report is present once it has ended. */
export function containmentView(job: ContainmentDoc) {
  const { id, state, started_ms, finished_ms, by, actor, tenant, since_ms, reason, actors, phase, error } =
    job;
  const report = job.report as ContainReport | null;
  return {
    id,
    state,
    started_ms,
    finished_ms,
    by,
    actor,
    tenant,
    since_ms,
    reason,
    actors,
    phase,
    report,
    error,
  };
}
