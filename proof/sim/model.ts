/**
 * The service, written down a second time in a few plain lines: lists and loops, no ledger, no store, nothing of
 * the engine's code. What undo means (order, dependents, report) is told by the model of the rollback tests.
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
  steps: { facts: StepFacts; arg: number; status: string; tool: ToolName }[];
}

interface Request {
  run: Run;
  arg: number;
  status: "pending" | "approved" | "denied" | "expired" | "consumed";
  until: number;
  /** Who stands behind its approvals: the one who gave it, and whose authority it was. */
  behind: Set<number>;
  approvals: number;
}

const at = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(1, list.length)];
const NOTHING: Said = { answer: "nothing", events: [] };
const CONFLICT: Said = { answer: "conflict", events: [] };
const FORBIDDEN: Said = { answer: "forbidden", events: [] };
const alive = ({ status }: Request): boolean => status === "pending" || status === "approved";

export class Model {
  readonly runs: Run[] = [];
  readonly requests: Request[] = [];
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
    const request = name === "pay" ? this.speaking(run, arg, events) : undefined;
    const mustAsk = name === "pay" && request?.status !== "approved";
    const refuse = (): Said => ({ answer: "block", events: [...events, "blocked"] });
    if (isHalted || (known === undefined && run.mode !== "observe")) return refuse();
    if ((held || mustAsk) && run.mode === "enforce") {
      if (!held && request === undefined)
        this.requests.push({
          ...{ run, arg, status: "pending", until: this.now + TTL_MS },
          ...{ behind: new Set(), approvals: 0 },
        });
      return refuse();
    }
    const answer = held || mustAsk ? "would_block" : "allow";
    if (answer === "would_block") events.push("would_block");
    if (request !== undefined && answer === "allow") {
      request.status = "consumed";
      events.push("approved");
    }
    if (name === "send") this.spent[run.agent]! += arg;
    const facts = run.undo.accept(known ?? null, depends_on);
    run.steps.push({ facts, arg, status: "intended", tool: name });
    return { answer: `${answer} ${facts.n}`, events: [...events, "intended"] };
  }

  /** The request that speaks for this call now; one that is past its time is found to be so. */
  private speaking(run: Run, arg: number, events: string[]): Request | undefined {
    const found = this.requests.find((one) => one.run === run && one.arg === arg && alive(one));
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
    return { answer: `${step.facts.n} ${status}`, events: [status] };
  }

  /** Nobody counts twice, neither by deciding nor by having lent. */
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
    const people = ways.find((way) => way.every((one) => !request.behind.has(one)));
    if (people === undefined) return CONFLICT;
    for (const one of people) request.behind.add(one);
    request.approvals++;
    if (request.approvals >= (request.arg >= LARGE ? 2 : 1)) request.status = "approved";
    return { answer: request.status, events: ["approved"] };
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

function isDone({ status }: { status: string }): boolean {
  return status === "succeeded" || status === "compensation_failed";
}
