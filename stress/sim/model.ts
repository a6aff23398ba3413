/**
 * The service, written down a second time in a few plain lines: lists and loops, no ledger, no store, nothing of
 * the engine's code. The model of the rollback tests defines undo (order, dependents, report).
 */
import { RunModel, type StepFacts, type ToolFacts } from "../../test/sim/rollback-model.ts";
import type { Action, Said, ToolName } from "./actions.ts";

export const BUDGET = 6;
export const LIMIT = 3;
export const TTL_MS = 3_600_000;
/** From this amount on a payment needs two people. */
export const LARGE = 1;

interface Tool extends ToolFacts {
  permission: "near" | "far";
}

const tool = (name: ToolName, effect: ToolFacts["effect"], more: Partial<Tool> = {}): Tool => ({
  name,
  effect,
  requires: [],
  undoable: effect === "compensable",
  approval: false,
  reads_back: false,
  permission: "near",
  ...more,
});

export const KNOWN: ReadonlyMap<string, Tool> = new Map(
  [
    tool("look", "read"),
    tool("make", "compensable"),
    tool("fill", "compensable", { requires: ["make"] }),
    tool("send", "irreversible"),
    tool("pay", "compensable"),
    tool("once", "compensable"),
    tool("far", "idempotent", { permission: "far" }),
  ].map((one) => [one.name, one]),
);

interface Run {
  agent: number;
  mode: string;
  permissions: string[];
  undo: RunModel;
  steps: { facts: StepFacts; arg: number; status: string; tool: ToolName; plan: Plan | null }[];
}

interface Request {
  run: Run;
  arg: number;
  status: "pending" | "approved" | "denied" | "expired" | "consumed";
  until: number;
  /** The authority of each of its approvals: the one who gave it, and then the delegator. */
  approvals: number[][];
}

interface Grant {
  person: number;
  agent: number;
  /** The people who had delegated to its giver by then. */
  lenders: number[];
  left: number;
}

interface Plan {
  run: Run;
  status: "pending" | "approved" | "denied" | "expired" | "ended" | "done";
  until: number;
  next: number;
  /** A call that needs a person has a separate request, which only the plan's order reaches. */
  calls: { tool: ToolName; arg: number; request: Request | null }[];
}

const at = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(1, list.length)];
const NOTHING: Said = { answer: "nothing", events: [] };
const CONFLICT: Said = { answer: "conflict", events: [] };
const FORBIDDEN: Said = { answer: "forbidden", events: [] };
const INVALID: Said = { answer: "invalid", events: [] };
const alive = ({ status }: Pick<Request | Plan, "status">): boolean =>
  status === "pending" || status === "approved";

export class Model {
  readonly runs: Run[] = [];
  readonly requests: Request[] = [];
  readonly grants: Grant[] = [];
  readonly plans: Plan[] = [];
  readonly halts: { agent: number; tool: ToolName | null }[] = [];
  private now = 0;
  private readonly spent = [0, 0];
  private readonly isApprover = [true, true, false];
  private readonly loans: { from: number; to: number; at: number }[] = [];

  perform(action: Action): Said {
    return (this[action.do] as (action: Action) => Said).call(this, action);
  }

  open({ agent, mode, wide }: Action & { do: "open" }): Said {
    const permissions = wide ? ["far", "near"] : ["near"];
    this.runs.push({ agent, mode, permissions, undo: new RunModel(), steps: [] });
    return { answer: "open", events: [] };
  }

  ask({ run: number, tool: name, arg, dep }: Action & { do: "ask" }): Said {
    const run = at(this.runs, number)!;
    const known = KNOWN.get(name);
    const depends_on = dep === null || run.steps.length === 0 ? [] : [dep % run.steps.length];
    const isHalted = this.halts.some(
      (halt) => halt.agent === run.agent && (halt.tool === null || halt.tool === name),
    );
    const stands = (of: Run, step: Run["steps"][number]): boolean => of.undo.stands(step.facts);
    const held = [
      known === undefined,
      known !== undefined && !run.permissions.includes(known.permission),
      known?.requires.some((needed) => !run.steps.some((step) => step.tool === needed && isDone(step))),
      depends_on.some((n) => !stands(run, run.steps[n]!)),
      name === "once" &&
        this.runs.some((other) =>
          other.steps.some((step) => step.tool === "once" && step.arg === arg && stands(other, step)),
        ),
      name === "look" && run.steps.filter((step) => step.tool === "look").length >= LIMIT,
      name === "send" && this.spent[run.agent]! + arg > BUDGET,
    ].some(Boolean);

    const events: string[] = [];
    const plan = this.turnOf(run, name, arg);
    const own = plan?.calls[plan.next]?.request ?? null;
    const request = name === "pay" ? (own ?? this.speaking(run, arg, events)) : undefined;
    const isRefused = isHalted || held || (known === undefined && run.mode !== "observe");
    const grant =
      name === "pay" && request?.status !== "approved" && !isRefused ? this.standingIn(run, arg) : undefined;
    const mustAsk = name === "pay" && request?.status !== "approved" && grant === undefined;
    const refuse = (): Said => {
      const ended = plan === undefined ? [] : this.endPlan(plan, "ended");
      return { answer: "block", events: [...events, "blocked", ...ended] };
    };
    if (isHalted || (known === undefined && run.mode !== "observe")) return refuse();
    if ((held || mustAsk) && run.mode === "enforce") {
      if (!held && request === undefined) this.requests.push(this.newRequest(run, arg));
      return refuse();
    }
    if (grant !== undefined) {
      grant.left--;
      if (request !== undefined) {
        request.status = "expired";
        events.push("approval_expired");
      }
      events.push("approved");
    }
    const answer = held || mustAsk ? "would_block" : "allow";
    if (answer === "would_block") events.push("would_block");
    if (request !== undefined && grant === undefined && answer === "allow") {
      if (request === own) this.closeWaiting(run, arg, events);
      request.status = "consumed";
      events.push("approved");
    }
    if (name === "send") this.spent[run.agent]! += arg;
    const facts = run.undo.accept(known ?? null, depends_on);
    run.steps.push({ facts, arg, status: "intended", tool: name, plan: plan ?? null });
    if (plan !== undefined && ++plan.next === plan.calls.length) plan.status = "done";
    return { answer: `${answer} ${facts.n}`, events: [...events, "intended"] };
  }

  private newRequest(run: Run, arg: number): Request {
    return { status: "pending", approvals: [], run, arg, until: this.now + TTL_MS };
  }

  /** The oldest plan under way whose next call this is. */
  private turnOf(run: Run, tool: ToolName, arg: number): Plan | undefined {
    return this.plans.find((plan) => {
      const call = plan.calls[plan.next];
      const isUnderWay = plan.run === run && plan.status === "approved" && this.now < plan.until;
      return isUnderWay && call?.tool === tool && call.arg === arg;
    });
  }

  /** What its giver could decide alone now: nothing large. */
  private standingIn(run: Run, arg: number): Grant | undefined {
    return this.grants.find(
      ({ person, agent, lenders, left }) =>
        agent === run.agent &&
        left > 0 &&
        arg < LARGE &&
        [person, ...lenders].some((one) => this.isApprover[one]),
    );
  }

  /** What a plan's approval was used for need not be decided any more. */
  private closeWaiting(run: Run, arg: number, events: string[]): void {
    const asked = this.requests.findLast((one) => one.run === run && one.arg === arg && alive(one));
    if (asked?.status !== "pending") return;
    asked.status = "expired";
    events.push("approval_expired");
  }

  /** The request that speaks for this call now; one that is past its time is found to be so. */
  private speaking(run: Run, arg: number, events: string[]): Request | undefined {
    const found = this.requests.findLast((one) => one.run === run && one.arg === arg && alive(one));
    if (found === undefined || this.now < found.until) return found;
    found.status = "expired";
    events.push("approval_expired");
    return undefined;
  }

  report(action: Action & { do: "report" }): Said {
    return this.finish(action, ["intended"]);
  }

  resolve(action: Action & { do: "resolve" }): Said {
    return this.finish(action, ["intended", "uncertain"]);
  }

  private finish(action: Action & { do: "report" | "resolve" }, from: string[]): Said {
    const run = at(this.runs, action.run)!;
    const step = at(run.steps, action.step);
    if (step === undefined) return NOTHING;
    if (!from.includes(step.status)) return CONFLICT;
    const { status } = action;
    step.status = status;
    step.facts.has_id = status === "succeeded" && action.with_id;
    run.undo.finish(step.facts, status === "succeeded" ? "done" : status === "failed" ? "failed" : "unsure");
    const { plan } = step;
    const ended = plan?.status === "approved" && status !== "succeeded" ? this.endPlan(plan, "ended") : [];
    return { answer: `${step.facts.n} ${status}`, events: [status, ...ended] };
  }

  decide({ request: number, decision, person }: Action & { do: "decide" }): Said {
    const request = at(this.requests, number);
    if (request === undefined) return NOTHING;
    if (request.status !== "pending") return CONFLICT;
    if (this.now >= request.until) {
      request.status = "expired";
      return { answer: "conflict", events: ["approval_expired"] };
    }
    const ways = this.waysToDecide(person);
    if (ways.length === 0) return FORBIDDEN;
    if (decision === "deny") {
      request.status = "denied";
      return { answer: "denied", events: ["denied"] };
    }
    if (!this.approve(request, ways)) return CONFLICT;
    if (this.isEnough(request)) request.status = "approved";
    return { answer: request.status, events: ["approved"] };
  }

  /** One vote on other arguments, under what they themselves ask for. */
  offer({ request: number, person, arg }: Action & { do: "offer" }): Said {
    const request = at(this.requests, number);
    const { run } = request ?? {};
    const isOpen =
      request?.status === "pending" && this.now < request.until && this.waysToDecide(person).length > 0;
    if (run === undefined || !isOpen)
      return this.decide({ do: "decide", request: number, decision: "deny", person });
    if (arg === request!.arg) return INVALID;
    const asked = this.requests.some(
      (one) => one.run === run && one.arg === arg && alive(one) && this.now < one.until,
    );
    if (asked) return CONFLICT;
    request!.status = "denied";
    const offered = this.newRequest(run, arg);
    this.requests.push(offered);
    this.approve(offered, this.waysToDecide(person));
    if (this.isEnough(offered)) offered.status = "approved";
    return { answer: `denied ${offered.status}`, events: ["denied", "approved"] };
  }

  withdraw({ request: number }: Action & { do: "withdraw" }): Said {
    const request = at(this.requests, number);
    if (request === undefined) return NOTHING;
    if (request.status !== "pending") return CONFLICT;
    request.status = "expired";
    return { answer: this.now < request.until ? "expired" : "conflict", events: ["approval_expired"] };
  }

  grant({ person, agent, uses }: Action & { do: "grant" }): Said {
    if (this.waysToDecide(person).length === 0) return INVALID;
    const lenders = this.loans.filter(({ to }) => to === person).map(({ from }) => from);
    this.grants.push({ person, agent, lenders, left: uses });
    return { answer: "granted", events: ["granted"] };
  }

  revoke({ grant: number, person }: Action & { do: "revoke" }): Said {
    const grant = at(this.grants, number);
    if (grant === undefined) return NOTHING;
    if (grant.person !== person) return FORBIDDEN;
    if (grant.left === REVOKED) return CONFLICT;
    grant.left = REVOKED;
    return { answer: "revoked", events: ["grant_revoked"] };
  }

  propose({ run: number, calls }: Action & { do: "propose" }): Said {
    const run = at(this.runs, number)!;
    const planned = calls.map(({ tool, arg }) => ({
      ...{ tool, arg },
      request: tool === "pay" ? this.newRequest(run, arg) : null,
    }));
    if (this.plans.filter((plan) => plan.run === run && isPlanOpen(plan)).length >= PLANS) return CONFLICT;
    const status = planned.some(({ request }) => request !== null) ? "pending" : "approved";
    this.plans.push({ run, status, until: this.now + TTL_MS, next: 0, calls: planned });
    return { answer: status, events: ["plan_proposed"] };
  }

  /** One vote, counted in each call where it may count. */
  judge({ plan: number, decision, person }: Action & { do: "judge" }): Said {
    const plan = at(this.plans, number);
    if (plan === undefined) return NOTHING;
    if (plan.status !== "pending") return CONFLICT;
    if (this.now >= plan.until) return { answer: "conflict", events: this.expirePlan(plan) };
    const ways = this.waysToDecide(person);
    if (ways.length === 0) return FORBIDDEN;
    if (decision === "deny") {
      plan.status = "denied";
      return { answer: "denied", events: ["plan_denied"] };
    }
    const asking = requestsOf(plan);
    if (asking.map((request) => this.approve(request, ways)).every((counts) => !counts)) return CONFLICT;
    if (!asking.every((request) => this.isEnough(request)))
      return { answer: "pending", events: ["plan_approved"] };
    plan.status = "approved";
    for (const request of asking) request.status = "approved";
    return { answer: "approved", events: ["plan_approved", ...asking.map(() => "approved")] };
  }

  retract({ plan: number }: Action & { do: "retract" }): Said {
    const plan = at(this.plans, number);
    if (plan === undefined) return NOTHING;
    if (!isPlanOpen(plan)) return CONFLICT;
    return { answer: "expired", events: this.expirePlan(plan) };
  }

  follow({ plan: number, skip }: Action & { do: "follow" }): Said {
    const plan = at(this.plans, number);
    if (plan === undefined) return NOTHING;
    const { tool, arg } = at(plan.calls, plan.next + skip)!;
    return this.ask({ do: "ask", run: this.runs.indexOf(plan.run), tool, arg, dep: null });
  }

  private expirePlan(plan: Plan): string[] {
    return ["approval_expired", ...this.endPlan(plan, "expired")];
  }

  /** Its unused approval ends with it. */
  private endPlan(plan: Plan, status: "ended" | "expired"): string[] {
    plan.status = status;
    const unused = requestsOf(plan).filter((request) => request.status === "approved");
    for (const request of unused) request.status = "expired";
    return unused.map(() => "approval_expired");
  }

  /** The approvals that stand: of people whose authority was not taken away since. */
  private standing({ approvals }: Request): number[][] {
    return approvals.filter((people) => this.isApprover[people.at(-1)!]);
  }

  /** No person counts twice, by deciding or by delegating. */
  private isEnough(request: Request): boolean {
    const counted = new Set<number>();
    const counting = this.standing(request).filter((people) => {
      if (people.some((one) => counted.has(one))) return false;
      for (const one of people) counted.add(one);
      return true;
    });
    return counting.length >= (request.arg >= LARGE ? 2 : 1);
  }

  /** Whether one of these ways to decide counts: with no person behind it who counts already. */
  private approve(request: Request, ways: readonly number[][]): boolean {
    const behind = new Set(this.standing(request).flat());
    const people = ways.find((way) => way.every((one) => !behind.has(one)));
    if (people !== undefined) request.approvals.push(people);
    return people !== undefined;
  }

  private waysToDecide(person: number): number[][] {
    const lent = this.loans
      .filter(({ from, to }) => to === person && this.isApprover[from])
      .sort((a, b) => a.at - b.at)
      .map(({ from }) => [person, from]);
    return this.isApprover[person] ? [[person], ...lent] : lent;
  }

  lend({ from, to }: Action & { do: "lend" }): Said {
    this.now++;
    if (!this.isApprover[from]) return FORBIDDEN;
    this.loans.push({ from, to, at: this.now });
    return { answer: "lent", events: ["delegated"] };
  }

  turn({ person, approver }: Action & { do: "turn" }): Said {
    this.isApprover[person] = approver;
    return NOTHING;
  }

  age({ request: number }: Action & { do: "age" }): Said {
    const request = at(this.requests, number);
    if (request === undefined || !alive(request) || this.now < request.until) return NOTHING;
    request.status = "expired";
    return { answer: "expired", events: ["approval_expired"] };
  }

  halt({ agent, tool }: Action & { do: "halt" }): Said {
    this.halts.push({ agent, tool });
    return { answer: "halted", events: ["halted"] };
  }

  lift({ halt }: Action & { do: "lift" }): Said {
    if (this.halts.length === 0) return NOTHING;
    this.halts.splice(halt % this.halts.length, 1);
    return { answer: "resumed", events: ["resumed"] };
  }

  time({ ms }: Action & { do: "time" }): Said {
    this.now += ms;
    return NOTHING;
  }

  rollback({ run: number, fails }: Action & { do: "rollback" }): Said {
    const { undo, steps } = at(this.runs, number)!;
    const ends = new Map<number, "undone" | "failed">();
    const events: string[] = [];
    for (const step of [...steps].reverse()) {
      const { facts } = step;
      if (!undo.canBeUndone(facts) || undo.holders(facts).length > 0) continue;
      const end = (fails >> (facts.n % 8)) & 1 ? "failed" : "undone";
      ends.set(facts.n, end);
      step.status = end === "undone" ? "compensated" : "compensation_failed";
      if (end === "undone") undo.undone(facts);
      events.push(`compensating ${facts.n}`, `${step.status} ${facts.n}`);
    }
    return { answer: JSON.stringify(undo.report(ends)), events };
  }

  crash(): Said {
    return NOTHING;
  }
}

const REVOKED = -1;
/** Plans of a run that may be under way at once. */
const PLANS = 20;

const isPlanOpen = ({ status }: Plan): boolean => status === "pending" || status === "approved";

const requestsOf = ({ calls }: Plan): Request[] => calls.flatMap(({ request }) => request ?? []);

function isDone({ status }: { status: string }): boolean {
  return status === "succeeded" || status === "compensation_failed";
}
