/**
 * The actions of a history: agents ask, plan, withdraw and report, people decide, offer, grant, delegate, lose their
 * role, halt and roll back, clocks jump, processes crash. An action names its object by number, counted around,
 * so that any part of a history is one too.
 */
import { seeded } from "../../test/support/env.ts";

export const MODES = ["enforce", "observe", "advise"] as const;
export const TOOLS = ["look", "make", "fill", "send", "pay", "once", "far", "ghost"] as const;
/** What plans are made of: what needs a person, what does not, and what may be refused. */
export const PLANNED = ["pay", "make", "look"] as const;
export type PlannedTool = (typeof PLANNED)[number];
export type ToolName = (typeof TOOLS)[number];
/** Two approvers, and somebody who can decide only with their delegation. */
export const PEOPLE = ["ann", "dan", "eve"] as const;
export const STATUSES = ["succeeded", "failed", "uncertain"] as const;

export type Action =
  | { do: "open"; agent: number; mode: (typeof MODES)[number]; wide: boolean }
  | { do: "ask"; run: number; tool: ToolName; arg: number; dep: number | null }
  | { do: "report"; run: number; step: number; status: (typeof STATUSES)[number]; with_id: boolean }
  | { do: "resolve"; run: number; step: number; status: "succeeded" | "failed"; with_id: boolean }
  | { do: "decide"; request: number; decision: "approve" | "deny"; person: number }
  | { do: "lend"; from: number; to: number }
  | { do: "turn"; person: number; approver: boolean }
  /** A denial with other arguments approved ahead. */
  | { do: "offer"; request: number; person: number; arg: number }
  | { do: "withdraw"; request: number }
  | { do: "grant"; person: number; agent: number; uses: number }
  | { do: "revoke"; grant: number; person: number }
  | { do: "propose"; run: number; calls: { tool: PlannedTool; arg: number }[] }
  | { do: "judge"; plan: number; decision: "approve" | "deny"; person: number }
  | { do: "retract"; plan: number }
  /** The next call of a plan, or another one of it. */
  | { do: "follow"; plan: number; skip: number }
  | { do: "age"; request: number }
  | { do: "halt"; agent: number; tool: ToolName | null }
  | { do: "lift"; halt: number }
  | { do: "time"; ms: number }
  /** The undo of the steps whose bit is set fails. */
  | { do: "rollback"; run: number; fails: number }
  | { do: "crash" };

/** What a side says to an action: the answer, and the ledger events that it wrote. */
export interface Said {
  answer: string;
  events: string[];
}

const MINUTE_MS = 60_000;

export function makeHistory(seed: number): Action[] {
  const random = seeded(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const chance = (percent: number): boolean => random() * 100 < percent;
  const pick = <T>(items: readonly T[]): T => items[below(items.length)]!;
  const open = (): Action => ({
    do: "open",
    agent: below(2),
    mode: chance(60) ? "enforce" : pick(MODES),
    wide: chance(50),
  });
  const ask = (): Action => ({
    do: "ask",
    run: below(8),
    // Payments most of all: they are what people decide.
    tool: chance(15) ? "pay" : pick(TOOLS),
    arg: below(3),
    dep: chance(20) ? below(8) : null,
  });
  const lend = (): Action => {
    const from = below(2);
    return { do: "lend", from, to: (from + 1 + below(2)) % PEOPLE.length };
  };
  /** How likely each is, and how it comes about. */
  const kinds: [weight: number, make: () => Action][] = [
    [5, open],
    [40, ask],
    [
      25,
      () => ({
        do: "report",
        run: below(8),
        step: below(8),
        status: chance(70) ? "succeeded" : pick(STATUSES),
        with_id: chance(90),
      }),
    ],
    [
      4,
      () => ({
        do: "resolve",
        run: below(8),
        step: below(8),
        status: pick(["succeeded", "failed"] as const),
        with_id: chance(80),
      }),
    ],
    [
      20,
      () => ({
        do: "decide",
        request: below(8),
        decision: chance(80) ? "approve" : "deny",
        person: below(PEOPLE.length),
      }),
    ],
    [5, () => ({ do: "offer", request: below(8), person: below(PEOPLE.length), arg: below(3) })],
    [3, () => ({ do: "withdraw", request: below(8) })],
    [4, () => ({ do: "grant", person: below(PEOPLE.length), agent: below(2), uses: 1 + below(2) })],
    [1, () => ({ do: "revoke", grant: below(4), person: below(PEOPLE.length) })],
    [
      4,
      () => ({
        do: "propose",
        run: below(8),
        calls: Array.from({ length: 1 + below(3) }, () => ({ tool: pick(PLANNED), arg: below(3) })),
      }),
    ],
    [
      9,
      () => ({
        do: "judge",
        plan: below(4),
        decision: chance(85) ? "approve" : "deny",
        person: below(PEOPLE.length),
      }),
    ],
    [1, () => ({ do: "retract", plan: below(4) })],
    [12, () => ({ do: "follow", plan: below(4), skip: chance(85) ? 0 : 1 + below(2) })],
    [6, lend],
    [4, () => ({ do: "turn", person: below(2), approver: chance(50) })],
    [2, () => ({ do: "age", request: below(8) })],
    [2, () => ({ do: "halt", agent: below(2), tool: chance(70) ? pick(TOOLS) : null })],
    [2, () => ({ do: "lift", halt: below(4) })],
    [6, () => ({ do: "time", ms: chance(70) ? below(40) * MINUTE_MS : (below(240) - 120) * MINUTE_MS })],
    [5, () => ({ do: "rollback", run: below(8), fails: chance(60) ? 0 : below(256) })],
    [1, () => ({ do: "crash" })],
  ];
  const whole = kinds.reduce((sum, [weight]) => sum + weight, 0);
  const next = (): Action => {
    let at = below(whole);
    for (const [weight, make] of kinds) {
      if (at < weight) return make();
      at -= weight;
    }
    return ask();
  };
  return [open(), ...Array.from({ length: 8 + below(40) }, next)];
}
