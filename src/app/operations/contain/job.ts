/**
 * A containment as a job. Its halt is in force when it is answered; the rest goes on in the background, held by a
 * lease, and is carried on by whichever process finds it abandoned. For one scope there is one at a time.
 */
import type { Core } from "../../../engine/core.ts";
import { haltUnit } from "../../../engine/halts.ts";
import { HALTS_KEY } from "../../../engine/keys.ts";
import {
  dropLease,
  keepLease,
  type Lease,
  type LeaseSubject,
  LostLease,
  needOfLease,
  releaseLease,
  tryLease,
} from "../../../engine/lease.ts";
import { conflict, messageOf, notFound, SvcError } from "../../../kernel/errors.ts";
import { valueHash } from "../../../kernel/hash.ts";
import { LIMITS } from "../../../kernel/limits.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { HALT_FIELDS, type Halt } from "../../../model/approval.ts";
import type { KeptPrincipal, Today } from "../../../model/roles.ts";
import type { ContainmentDoc } from "../../../port/docs.ts";
import type { Tx } from "../../../port/store.ts";
import { type App, announce } from "../../app.ts";
import { appFor } from "../../door/access.ts";
import type { ContainReport } from "./report.ts";
import type { Scope } from "./scope.ts";
import { ContainmentWork, describeScope } from "./work.ts";

interface ContainInput extends Scope {
  reason: string;
  by: string;
  authority?: KeptPrincipal | undefined;
  rollback: ContainmentDoc["rollback"];
  actors: string[];
}

const subjectOf = (id: string): LeaseSubject => ({ key: `contain/${id}`, what: `containment ${id}` });
/** Under it stands which containment of the scope was the last. */
const scopeKey = ({ actor, tenant }: Pick<Scope, "actor" | "tenant">): string =>
  `containment/${valueHash({ actor, tenant })}`;

interface Begun {
  job: ContainmentDoc;
  /** Null where another process works on it. */
  lease: Lease | null;
  records: LedgerRecord[];
}

/** The last containment of this scope, or undefined. */
export async function lastContainment(core: Core, scope: Pick<Scope, "actor" | "tenant">) {
  const id = await core.store.get("meta", scopeKey(scope));
  return typeof id === "string" ? core.store.get("containments", id) : undefined;
}

/**
 * Begins one, or carries on the one that is under way for the same scope. No agent that matches is allowed anything
 * after it. Null where `last`, as the caller read it, is no longer the last one of the scope, or has ended since: the
 * caller looks again, since a report may be there. So two callers never begin on the same reading.
 */
export async function startContainment(
  app: App,
  input: ContainInput,
  today: Today | undefined,
  last: ContainmentDoc | undefined,
): Promise<ContainmentDoc | null> {
  const { core } = app;
  const fresh = `ctn_${core.env.uuid()}`;
  const holder = `contain/${core.env.uuid()}`;
  const begun = await core.store.transact({
    needs: [
      ["meta", scopeKey(input)],
      ["halts", HALTS_KEY],
    ],
    run(tx: Tx): Begun | null {
      const there = goOn(core, tx, input, holder);
      if (there !== null) return there;
      const isLast = tx.get("meta", scopeKey(input)) === last?.id && last?.state !== "running";
      return isLast ? begin(core, tx, input, fresh, holder) : null;
    },
  });
  if (begun === null) return null;
  announce(core.listeners, begun.records);
  if (begun.lease !== null) app.background.track(work(app, begun.job, begun.lease, today));
  return begun.job;
}

function goOn(core: Core, tx: Tx, input: ContainInput, holder: string): Begun | null {
  const id = tx.get("meta", scopeKey(input));
  const job = typeof id === "string" ? tx.get("containments", id) : undefined;
  if (job?.state !== "running") return null;
  const sameReach = job.authority?.tenant === input.authority?.tenant;
  if (!sameReach || (job.rollback === "no") !== (input.rollback === "no"))
    throw conflict(
      "containment_differs",
      `containment ${job.id} of ${describeScope(job)} is under way with other options; wait until it has ended`,
    );
  const may = job.rollback !== "yes" || input.rollback === "yes";
  const lease = may ? tryLease(core, tx, subjectOf(job.id), holder) : null;
  return { job, lease, records: [] };
}

function begin(core: Core, tx: Tx, input: ContainInput, id: string, holder: string): Begun {
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
  const lease = tryLease(core, tx, subjectOf(id), holder);
  return { job, lease, records };
}

/** The very halt that the containment would make; one that holds for some tools only is not enough. */
function covers(halt: Halt, { actor, tenant }: Scope): boolean {
  const wanted = { tool: null, actor, tenant, environment: null };
  return HALT_FIELDS.every((field) => halt.scope[field] === wanted[field]);
}

export async function isHalted(core: Core, { halt_id }: ContainmentDoc): Promise<boolean> {
  const { active = [] } = (await core.store.get("halts", HALTS_KEY)) ?? {};
  return active.some(({ id }) => id === halt_id);
}

export async function haltInForce(core: Core, scope: Scope): Promise<Halt | undefined> {
  const { active = [] } = (await core.store.get("halts", HALTS_KEY)) ?? {};
  return active.find((halt) => covers(halt, scope));
}

/** Takes an abandoned containment over; false where a process works on it, it has ended, or it cannot be done here. */
export async function carryOn(app: App, id: string, today: Today | undefined): Promise<boolean> {
  const { core } = app;
  const holder = `contain/${core.env.uuid()}`;
  const taken = await core.store.transact({
    needs: [["containments", id], needOfLease(subjectOf(id))],
    run(tx: Tx) {
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

/** Carries on every containment whose holder is gone. */
export async function resumeContainments(app: App, today: Today | undefined): Promise<void> {
  const rows = await app.core.store.list("containments", { tag: "running", limit: LIMITS.page_max });
  for (const { key } of rows) await carryOn(app, key, today);
}

async function work(within: App, job: ContainmentDoc, lease: Lease, today: Today | undefined): Promise<void> {
  // Whoever carries it on, it reaches as far as the admin who began it.
  const tenant = job.authority?.tenant ?? null;
  const app = appFor(within, { tenant, tenant_only: tenant !== null });
  const { core } = app;
  const heartbeat = keepLease(core, lease);
  try {
    await new ContainmentWork(app, job, lease, heartbeat.lost, today).run();
  } catch (error) {
    app.log.warn("a containment broke off", { id: job.id, error: core.redact(messageOf(error)) });
    await brokenOff(core, job.id, lease, error).catch(() => {});
  } finally {
    await heartbeat.stop();
  }
}

/** Interruptions and a store that is away leave it to be carried on; anything else ends it, and the halt stays. */
async function brokenOff(core: Core, id: string, lease: Lease, error: unknown): Promise<void> {
  if (error instanceof LostLease) return;
  if (error instanceof SvcError && error.code === "unavailable") return releaseLease(core, lease);
  await core.store.transact({
    needs: [["containments", id], needOfLease(lease.subject)],
    run(tx: Tx) {
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

/** The last ones, newest first. */
export async function listContainments({ store }: Pick<Core, "store">): Promise<ContainmentDoc[]> {
  return (await store.list("containments", { order: "desc", limit: LISTED })).map(({ doc }) => doc);
}

export async function getContainment(core: Core, id: string): Promise<ContainmentDoc> {
  const job = await core.store.get("containments", id);
  if (job === undefined) throw notFound(`unknown containment ${id}`, "unknown_job");
  return job;
}

/** What is shown of a containment; a report is there once it has ended. */
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
