/**
 * What may have been counted before a call, as far as changed limits, budgets and flows can tell it apart. Entries of
 * both policies that count the same calls are given the same count; others may have counted anything.
 */
import { canonical } from "../../../kernel/canonical.ts";
import { parseDuration } from "../../../kernel/duration.ts";
import type { Json } from "../../../kernel/json.ts";
import { parsePath, readPath } from "../../../kernel/paths.ts";
import type { PolicyCall } from "../call.ts";
import type { Policy } from "../compile.ts";
import type { CounterDoc } from "../counters.ts";
import { counterKeys } from "../evaluate.ts";
import type { Entry } from "./entries.ts";
import { Undecidable } from "./machine.ts";

interface Counted {
  side: "a" | "b";
  key: string;
  used: number;
  /** How long before the call. */
  age_ms: number;
}

export interface Level {
  counted: Counted[];
  /** In words, for the example. */
  told: string[];
}

interface Part {
  policy: Policy;
  entry: Entry;
}

const MOST_LEVELS = 200;
const KIND = { limits: "limit", budgets: "budget", flows: "flow" } as const;

export function levelsOf(a: Policy, b: Policy, speaking: readonly Part[], call: PolicyCall): Level[] {
  const counting = speaking.filter(({ entry }) => entry.section in KIND);
  let levels: Level[] = [{ counted: [], told: [] }];
  if (counting.length === 0) return levels;
  const keys = { a: keysOf(a, call), b: keysOf(b, call) };
  const groups = new Map<string, Part[]>();
  for (const part of counting) {
    const name = whatItCounts(part);
    groups.set(name, [...(groups.get(name) ?? []), part]);
  }
  for (const group of groups.values()) {
    const own = groupLevels(group, call, (part) => {
      const side = part.policy === a ? "a" : "b";
      return { side, key: keys[side].get(`${KIND[part.entry.section as "limits"]} ${part.entry.id}`)! };
    });
    levels = levels.flatMap((level) =>
      own.map(({ counted, told }) => ({
        counted: [...level.counted, ...counted],
        told: [...level.told, ...told],
      })),
    );
    if (levels.length > MOST_LEVELS) throw new Undecidable("too many counts changed at once");
  }
  return levels;
}

function keysOf(policy: Policy, call: PolicyCall): Map<string, string> {
  return new Map(counterKeys(policy, call).map(({ kind, id, key }) => [`${kind} ${id}`, key]));
}

interface CountingDoc {
  match?: unknown;
  after?: unknown;
  per?: string;
  path?: string;
  max?: number;
  window?: string;
  within?: string;
  refund?: boolean;
}

function docOf({ policy, entry }: Part): CountingDoc {
  return (policy.doc[entry.section] as readonly CountingDoc[])[entry.index]!;
}

function whatItCounts(part: Part): string {
  const { match, after, per, path } = docOf(part);
  const over = part.entry.section === "flows" ? spanOf(part) === null : per;
  return canonical([
    part.entry.section,
    match ?? null,
    after ?? null,
    over ?? null,
    path ?? null,
  ] as unknown as Json);
}

/** Null for a flow that looks at its run alone. */
function spanOf(part: Part): number | null {
  const { window, within } = docOf(part);
  if (part.entry.section !== "flows") return parseDuration(window!);
  return within === undefined || within === "run" ? null : parseDuration(within);
}

function groupLevels(
  group: readonly Part[],
  call: PolicyCall,
  place: (part: Part) => { side: "a" | "b"; key: string },
): Level[] {
  const amounts = new Set(group.flatMap((part) => amountsOf(part, call)));
  const spans = [...new Set(group.flatMap((part) => spanOf(part) ?? []))];
  // As old as a span is what that span no longer sees, and longer ones still do.
  const ages = [0, ...spans];
  const levels: Level[] = [{ counted: [], told: [] }];
  for (const used of amounts) {
    for (const age_ms of ages) {
      const counted = group.map((part) => ({ ...place(part), used, age_ms }));
      const ago = age_ms === 0 ? "" : ` ${age_ms / 1000}s before`;
      const told = [...new Set(group.map((part) => toldOf(part, used) + ago))];
      levels.push({ counted, told });
      // Where only one of the policies gives back, it may have counted less of the same calls.
      const kept = group.filter((part) => docOf(part).refund !== true);
      if (kept.length === 0 || kept.length === group.length) continue;
      const without = kept.map((part) => ({ ...place(part), used, age_ms }));
      levels.push({ counted: without, told: told.map((text) => `${text}, and undone`) });
    }
  }
  return levels;
}

function amountsOf(part: Part, call: PolicyCall): number[] {
  const { max = 0, path } = docOf(part);
  if (part.entry.section === "flows") return [1];
  if (part.entry.section === "limits") return max === 0 ? [] : [max];
  const value = readPath(parsePath(path!), { args: call.args, result: undefined });
  const amount = typeof value === "number" ? Math.max(0, value) : 0;
  return [max, max + 1, max - amount].filter((used) => used > 0);
}

function toldOf({ entry }: Part, used: number): string {
  if (entry.section === "flows") return `flow ${entry.id} was set off`;
  const kind = KIND[entry.section as "limits"];
  return `${kind} ${entry.id}: ${used} used`;
}

export function countersFor({ counted }: Level, side: "a" | "b", now_ms: number): Map<string, CounterDoc> {
  const counters = new Map<string, CounterDoc>();
  for (const one of counted) {
    if (one.side === side && one.key !== undefined)
      counters.set(one.key, { buckets: [[now_ms - one.age_ms, one.used]] });
  }
  return counters;
}
