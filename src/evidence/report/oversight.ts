/**
 * Measures human oversight: figures on the requests and decisions of a period. Counts come from the ledger and follow
 * the definitions of the period report; times come from the requests.
 */
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import type { PlanDoc } from "../../govern/plans/plan.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { isProbe } from "../../govern/roles.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type CompiledPolicy, DEFAULT_REASON } from "../../rules/policy/compile.ts";
import { countRecords, medianValue, requestsAround } from "./period/period.ts";

interface OversightContext {
  since_ms: number;
  until_ms: number;
  version: string;
  policy: CompiledPolicy;
  /** Omits the names of approvers. */
  anonymous: boolean;
}

export interface DecisionFigures {
  name: string;
  approved: number;
  denied: number;
  /** Share of the decisions that approved; null without decisions. */
  approve_rate: number | null;
  median_ms: number | null;
  p90_ms: number | null;
  under_5s: number;
  /**
   * Decisions sent without the card's hash, or in a group. A hash shows that the card was fetched, not that it was
   * read.
   */
  without_card: number;
  /** Decisions made in a table together with others. They count as `without_card` too. */
  in_group: number;
}

interface RuleFigures extends DecisionFigures {
  requests: number;
  expired: number;
}

export interface OversightReport {
  format: "svc-oversight-report";
  version: 1;
  since_ms: number;
  until_ms: number;
  made_by: string;
  anonymous: boolean;
  requests: { opened: number; approved: number; denied: number; expired: number; escalated: number };
  approve_rate: number | null;
  time_to_decide: { median_ms: number | null; p90_ms: number | null };
  /**
   * Single votes: a request with a quorum has several, and a vote on a plan counts for each call that needs approval.
   */
  decisions: { total: number; under_5s: number; without_card: number; in_group: number };
  by_approver: DecisionFigures[];
  by_rule: RuleFigures[];
  break_glass: { count: number; latest: { ts_ms: number; by: string; tool: string; run_id: string }[] };
  grants: { given: number; revoked: number; uses: number; by_grant: { id: string; uses: number }[] };
  rules: {
    /** Restricting rules without any refusal or request in the period. */
    never_used: string[];
    always_approved: { rule: string; requests: number }[];
    always_denied: { rule: string; requests: number }[];
  };
  supports: { figure: string; duty: string }[];
}

const QUICK_MS = 5_000;
const PAGE = 1_000;
const LATEST = 50;
const NO_RULE = "no rule";
const ENGINE = "engine";

/** Legal duties for which a figure is relevant. The report does not judge whether a duty is met. */
const DUTIES: OversightReport["supports"] = [
  {
    figure: "requests, approve rate, time to decide",
    duty: "human oversight: showing that people review calls and how they decide (EU AI Act, Article 14; use under oversight, Article 26(2))",
  },
  {
    figure:
      "decisions under five seconds, decided without opening the card (sent without its hash), decided in a group",
    duty: "human oversight: awareness of automation bias (EU AI Act, Article 14(4)(b))",
  },
  {
    figure: "by approver",
    duty: "human oversight: assigning it to people with the competence and authority (EU AI Act, Article 26(2))",
  },
  {
    figure: "break-glass",
    duty: "human oversight: overriding and stopping (EU AI Act, Article 14(4)(d) and (e)); record keeping of who did (Article 12)",
  },
  {
    figure: "grants and the calls that they allowed",
    duty: "record keeping: tracing calls without their own approval request (EU AI Act, Articles 12 and 26(6))",
  },
  {
    figure: "by rule, rules never used, always approved, always denied",
    duty: "monitoring of operation: checking that the active rules are still appropriate (EU AI Act, Article 26(5))",
  },
];

/** Whether and how the approver saw the call. */
interface ShownBy {
  hasCard: boolean;
  inGroup: boolean;
}

const CARD = /; card sha256:[0-9a-f]{64}$/;
const GROUP = /^request \S+(?: \(\d+ of \d+\))? in a group of \d+/;

/** In a group decision, the card's hash only means that its row was in the table. */
function shownBy(detail: string): ShownBy {
  const inGroup = GROUP.test(detail);
  return { inGroup, hasCard: !inGroup && CARD.test(detail) };
}

class Figures {
  approved = 0;
  denied = 0;
  under_5s = 0;
  without_card = 0;
  in_group = 0;
  requests = 0;
  expired = 0;
  readonly waits: number[] = [];

  decided(event: string, wait: number | null, { hasCard, inGroup }: ShownBy): void {
    if (event === "denied") this.denied++;
    else this.approved++;
    if (!hasCard) this.without_card++;
    if (inGroup) this.in_group++;
    if (wait === null) return;
    this.waits.push(wait);
    if (wait < QUICK_MS) this.under_5s++;
  }

  shown(name: string): DecisionFigures {
    const { approved, denied, under_5s, without_card, in_group, waits } = this;
    const approve_rate = share(approved, approved + denied);
    return {
      ...{ name, approved, denied, approve_rate },
      ...{ median_ms: medianValue(waits), p90_ms: percentile90(waits), under_5s, without_card, in_group },
    };
  }
}

export async function collectOversight(
  store: StateStore,
  context: OversightContext,
): Promise<OversightReport> {
  const { since_ms, until_ms, policy } = context;
  const { records: size } = await store.head();
  const counts = await countRecords(store, since_ms, until_ms, size);
  const requests = new Map<string, ApprovalDoc>();
  const rules = new Groups();
  const waits: number[] = [];
  for await (const doc of requestsAround(store, since_ms, until_ms)) {
    requests.set(doc.id, doc);
    if (isProbe(doc.internal.principal)) {
      counts.requests.delete(doc.id);
      continue;
    }
    if (doc.requested_ms >= since_ms) {
      counts.requests.add(doc.id);
      rules.of(doc.rule ?? NO_RULE).requests++;
    }
    if (doc.decided_ms !== null && doc.decided_ms >= since_ms && doc.decided_ms <= until_ms)
      waits.push(doc.decided_ms - doc.requested_ms);
  }
  const pass = await decisionsOf(store, context, size, requests, rules);
  const { approved, denied, break_glass } = counts.approvals;
  const expired = counts.approvals.expired - pass.of_probe.approval_expired;
  const escalated = counts.approvals.escalated - pass.of_probe.approval_escalated;
  const all = [...pass.approvers.values()];
  const sum = (field: "approved" | "denied" | "under_5s" | "without_card" | "in_group") =>
    all.reduce((total, one) => total + one[field], 0);
  return {
    format: "svc-oversight-report",
    version: 1,
    ...{ since_ms, until_ms, made_by: `svc ${context.version}`, anonymous: context.anonymous },
    requests: { opened: counts.requests.size, approved, denied, expired, escalated },
    approve_rate: share(approved, approved + denied),
    time_to_decide: { median_ms: medianValue(waits), p90_ms: percentile90(waits) },
    decisions: {
      total: sum("approved") + sum("denied"),
      under_5s: sum("under_5s"),
      without_card: sum("without_card"),
      in_group: sum("in_group"),
    },
    by_approver: pass.approvers
      .list(context.anonymous ? "approver" : null)
      .map(({ figures, name }) => figures.shown(name)),
    by_rule: rules.list(null).map(({ figures, name }) => ({
      ...figures.shown(name),
      requests: figures.requests,
      expired: figures.expired,
    })),
    break_glass: { count: break_glass, latest: pass.broken.slice(-LATEST).reverse() },
    grants: pass.grants(),
    rules: judgeRules(policy, rules, new Set(counts.reasons.list().map(({ name }) => name))),
    supports: DUTIES,
  };
}

/** Figures by name, created on first use. */
class Groups extends Map<string, Figures> {
  of(name: string): Figures {
    const figures = this.get(name) ?? new Figures();
    this.set(name, figures);
    return figures;
  }

  /** Entries with the most decisions first. If `instead` is given, numbered labels replace the names. */
  list(instead: string | null): { name: string; figures: Figures }[] {
    const order = [...this].sort(
      ([a, x], [b, y]) => y.approved + y.denied - (x.approved + x.denied) || (a < b ? -1 : 1),
    );
    return order.map(([name, figures], i) => ({
      name: instead === null ? name : `${instead} ${i + 1}`,
      figures,
    }));
  }
}

const AGED = ["approval_expired", "approval_escalated"] as const;
const EVENTS = ["approved", "denied", ...AGED, "plan_approved", "plan_denied"];
const REQUEST = /^request (apr_[0-9a-f-]{36})(?: of plan (pln_[0-9a-f-]{36}))?/;
const PLAN = /^plan (pln_[0-9a-f-]{36})/;
const USED_GRANT = /^used grant (grt_[0-9a-f-]{36})/;

class DecisionPass {
  readonly approvers = new Groups();
  readonly broken: OversightReport["break_glass"]["latest"] = [];
  /** How the approver of each plan's last vote saw its cards. That vote creates the plan's requests. */
  readonly plans = new Map<string, ShownBy>();
  /** Ended requests of the probe, which no approver was notified of. */
  readonly of_probe: Record<(typeof AGED)[number], number> = { approval_expired: 0, approval_escalated: 0 };
  private readonly used = new Map<string, number>();
  given = 0;
  revoked = 0;

  useGrant(id: string): void {
    this.used.set(id, (this.used.get(id) ?? 0) + 1);
  }

  grants(): OversightReport["grants"] {
    const by_grant = [...this.used].map(([id, uses]) => ({ id, uses })).sort((a, b) => b.uses - a.uses);
    const uses = by_grant.reduce((sum, one) => sum + one.uses, 0);
    return { given: this.given, revoked: this.revoked, uses, by_grant: by_grant.slice(0, LATEST) };
  }
}

async function decisionsOf(
  store: StateStore,
  { since_ms, until_ms, anonymous }: OversightContext,
  size: number,
  requests: ReadonlyMap<string, ApprovalDoc>,
  rules: Groups,
): Promise<DecisionPass> {
  const pass = new DecisionPass();
  const events = [...EVENTS, "granted", "grant_revoked"];
  let from = 0;
  while (from < size) {
    const lines = await store.records({ from, to: size - 1, since_ms, until_ms, event: events, limit: PAGE });
    for (const line of lines) {
      const record = JSON.parse(line) as LedgerRecord;
      from = record.seq + 1;
      const plan = PLAN.exec(record.detail ?? "")?.[1];
      if (plan === undefined) take(pass, rules, record, requests, anonymous);
      else if (record.event !== "approval_expired" && record.event !== "approval_escalated")
        takePlanVote(pass, record, plan, await store.get("plans", plan));
    }
    if (lines.length < PAGE) break;
  }
  return pass;
}

/**
 * Counts a vote on a plan. The records of the requests that an approved plan creates are not counted as votes again.
 */
function takePlanVote(
  pass: DecisionPass,
  { event, actor, detail = "", ts_ms }: LedgerRecord,
  id: string,
  plan: PlanDoc | undefined,
): void {
  const shown = shownBy(detail);
  pass.plans.set(id, shown);
  const wait = plan === undefined ? null : ts_ms - plan.requested_ms;
  const calls = plan?.calls.filter(({ approval_id }) => approval_id !== null).length ?? 1;
  const verdict = event === "plan_denied" ? "denied" : "approved";
  for (let i = 0; i < calls; i++) pass.approvers.of(actor).decided(verdict, wait, shown);
}

function take(
  pass: DecisionPass,
  rules: Groups,
  record: LedgerRecord,
  requests: ReadonlyMap<string, ApprovalDoc>,
  anonymous: boolean,
): void {
  const { actor, detail = "", ts_ms, tool = "", run_id = "" } = record;
  const event: string = record.event;
  if (event === "granted") pass.given++;
  else if (event === "grant_revoked") pass.revoked++;
  const grant = USED_GRANT.exec(detail)?.[1];
  if (grant !== undefined) pass.useGrant(grant);
  if (event === "approved" && detail.startsWith("break-glass:"))
    pass.broken.push({ ts_ms, by: anonymous ? "an admin" : actor, tool, run_id });
  const [, id, plan] = REQUEST.exec(detail) ?? [];
  if (id === undefined) return;
  const doc = requests.get(id);
  if (doc !== undefined && isProbe(doc.internal.principal)) {
    for (const aged of AGED) if (event === aged) pass.of_probe[aged]++;
    return;
  }
  if (event === "approval_escalated") return;
  const rule = rules.of(doc?.rule ?? NO_RULE);
  if (event === "approval_expired") rule.expired++;
  if ((event !== "approved" && event !== "denied") || actor === ENGINE) return;
  const wait = doc === undefined ? null : ts_ms - doc.requested_ms;
  const shown = plan === undefined ? shownBy(detail) : (pass.plans.get(plan) ?? shownBy(""));
  if (plan === undefined) pass.approvers.of(actor).decided(event, wait, shown);
  // One of several required votes does not decide the request.
  if (!/^request \S+ \(\d+ of \d+\)/.test(detail)) rule.decided(event, wait, shown);
}

function judgeRules(
  policy: CompiledPolicy,
  rules: Groups,
  reasons: ReadonlySet<string>,
): OversightReport["rules"] {
  const restricting = (policy.doc.rules ?? []).filter(({ action }) => action !== "allow");
  const said = [...reasons];
  const isUsed = ({ id, action, reason }: (typeof restricting)[number]) =>
    rules.has(id) || said.some((one) => one.startsWith(reason ?? DEFAULT_REASON[action](id)));
  const decided = [...rules].filter(
    ([name, { approved, denied }]) => name !== NO_RULE && approved + denied > 0,
  );
  const always = (field: "approved" | "denied", other: "approved" | "denied") =>
    decided
      .filter(([, figures]) => figures[other] === 0)
      .map(([rule, figures]) => ({ rule, requests: figures[field] }))
      .sort((a, b) => b.requests - a.requests);
  return {
    never_used: restricting.filter((rule) => !isUsed(rule)).map(({ id }) => id),
    always_approved: always("approved", "denied"),
    always_denied: always("denied", "approved"),
  };
}

function share(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.round((part / whole) * 1_000) / 1_000;
}

/** The smallest value that at least 90 % of the values do not exceed. */
function percentile90(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.9) - 1]!;
}
