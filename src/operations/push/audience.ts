/** Who gets a push message: the people whose vote counts now, by their groups, delegations and tenant. */
import {
  type ApprovalDoc,
  OPEN_APPROVAL_STATUSES,
  type StoredDelegation,
} from "../../govern/approvals/approval.ts";
import { isExpired } from "../../govern/expiry.ts";
import type { PlanDoc } from "../../govern/plans/plan.ts";
import { digestRequests, isPlanId } from "../../govern/plans/plan.ts";
import type { PersonDevices } from "../../govern/push/device.ts";
import { type CallerPrincipal, hasRole, isProbe, seesTenant, tenantBinding } from "../../govern/roles.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { ServiceApp } from "../app.ts";
import { isVoteCounted } from "../approvals/cards.ts";
import { inDigest } from "../background/approval-digest.ts";
import { openRows } from "../background/expiry-queue.ts";
import { countOpenRequests } from "../documents.ts";
import { appFor, delegationsTo } from "../pipeline/access.ts";

/** A person with devices whose credential is valid, as the service sees them now. */
export interface PushPerson {
  doc: PersonDevices;
  principal: CallerPrincipal;
  delegations: readonly StoredDelegation[];
}

/** Documents of all people with devices. */
export async function peopleWithDevices({ core }: Pick<ServiceApp, "core">): Promise<PersonDevices[]> {
  const found: PersonDevices[] = [];
  const limit = SERVICE_LIMITS.page_max;
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await core.store.list("push_devices", { limit, after });
    found.push(...rows.map(({ doc }) => doc));
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return found;
    after = { sort: last.sort, key: last.key };
  }
}

/** Null if the person's credential is not valid in this process. */
export async function personToday(app: ServiceApp, doc: PersonDevices): Promise<PushPerson | null> {
  const principal = app.today(doc.holder);
  if (principal === null) return null;
  return { doc, principal, delegations: await delegationsTo(app, principal.name) };
}

/** Whether the request waits for this person's vote. */
export function isAsked(
  app: ServiceApp,
  { principal, delegations }: PushPerson,
  request: ApprovalDoc,
): boolean {
  if (!OPEN_APPROVAL_STATUSES.has(request.status) || isExpired(request, app.core.env.now())) return false;
  if (isProbe(request.internal.principal)) return false;
  if (!seesTenant(principal, request.tenant) || request.votes.some(({ by }) => by === principal.name))
    return false;
  return isVoteCounted(app, principal, request, delegations);
}

/** Whether the plan waits for this person's vote on any of its calls. */
function isAskedForPlan(app: ServiceApp, person: PushPerson, plan: PlanDoc): boolean {
  if (plan.status !== "pending" || isExpired(plan, app.core.env.now())) return false;
  return plan.internal.requests.some(
    (request, i) =>
      plan.calls[i]?.approval_id !== null && isAsked(app, person, { ...request, status: "pending" }),
  );
}

/** Reads the subjects of notifications, each at most once. */
export class PendingReader {
  private readonly app: ServiceApp;
  private readonly approvals = new Map<string, Promise<ApprovalDoc | undefined>>();
  private readonly plans = new Map<string, Promise<PlanDoc | undefined>>();
  private digested: Promise<ApprovalDoc[]> | undefined;

  constructor(app: ServiceApp) {
    this.app = app;
  }

  approval(id: string): Promise<ApprovalDoc | undefined> {
    return once(this.approvals, id, () => this.app.core.store.get("approvals", id));
  }

  plan(id: string): Promise<PlanDoc | undefined> {
    return once(this.plans, id, () => this.app.core.store.get("plans", id));
  }

  /** Requests of one agent that wait for this person and are notified together. */
  async digest(person: PushPerson, agent: string | null): Promise<ApprovalDoc[]> {
    this.digested ??= this.readDigested();
    return (await this.digested).filter(
      (one) => (agent === null || one.actor === agent) && isAsked(this.app, person, one),
    );
  }

  /** Whether the subject of a notification still waits for this person. */
  async isPending(person: PushPerson, id: string): Promise<boolean> {
    const agent = agentOfDigest(id);
    if (agent !== null) return (await this.digest(person, agent)).length > 0;
    if (isPlanId(id)) {
      const plan = await this.plan(id);
      return plan !== undefined && isAskedForPlan(this.app, person, plan);
    }
    if (!id.startsWith("apr_")) return true;
    const request = await this.approval(id);
    return request !== undefined && isAsked(this.app, person, request);
  }

  /** The number that the console's navigation shows to this person. */
  waiting({ principal }: PushPerson): Promise<number> {
    return countOpenRequests(appFor(this.app, principal));
  }

  private async readDigested(): Promise<ApprovalDoc[]> {
    const { store } = this.app.core;
    const rows = await openRows(store, "approvals", [...OPEN_APPROVAL_STATUSES]);
    const plans = await openRows(store, "plans", ["pending"]);
    return [
      ...rows.map(({ doc }) => doc).filter(inDigest),
      ...plans.flatMap(({ doc }) =>
        digestRequests(doc).map((one) => ({ ...one, status: "pending" as const })),
      ),
    ];
  }
}

function once<T>(known: Map<string, Promise<T>>, id: string, read: () => Promise<T>): Promise<T> {
  const found = known.get(id) ?? read();
  known.set(id, found);
  return found;
}

const DIGEST = "digest:";
export const digestId = (agent: string): string => `${DIGEST}${agent}`;
const agentOfDigest = (id: string): string | null => (id.startsWith(DIGEST) ? id.slice(DIGEST.length) : null);

/** Whether alerts about the entire service concern the person. */
export const hearsAlerts = ({ principal }: PushPerson): boolean =>
  hasRole(principal, "admin") && tenantBinding(principal) === null;
