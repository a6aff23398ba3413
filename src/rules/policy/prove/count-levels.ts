/**
 * Counts before a call that changed limits, budgets and flows can distinguish. Entries of both policies that count the
 * same calls get the same count; others can have any count. Whether a call carries an earlier value, or compares with an
 * earlier call, is free once a flow was set off.
 */

import { parseDuration } from "../../../kernel/duration.ts";
import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import { asJson } from "../../../kernel/json/json.ts";
import { parsePath, readPath } from "../../../kernel/paths.ts";
import type { PolicyCall } from "../call.ts";
import type { CounterDoc } from "../checks/counters.ts";
import type { CompiledPolicy } from "../compile.ts";
import { counterKeys } from "../evaluate.ts";
import { UndecidableError } from "./automata/machine.ts";
import type { ProverEntry } from "./entries.ts";

interface Counted {
  side: "a" | "b";
  /** Key of its counter; absent for a flow that looks at values. */
  key: string | undefined;
  used: number;
  /** Age of the count at the time of the call. */
  age_ms: number;
  /** A flow that looks at values, which applies to this call. */
  assumed?: string;
}

export interface CountLevel {
  counted: Counted[];
  /** Description for the example. */
  texts: string[];
}

interface Part {
  policy: CompiledPolicy;
  entry: ProverEntry;
}

type Place = (part: Part) => { side: "a" | "b"; key: string | undefined };

const MAX_LEVELS = 200;
/** Maximum different conditions on values of flows with the same first calls. */
const MAX_CONDITIONS = 4;
const KIND = { limits: "limit", budgets: "budget", flows: "flow" } as const;

export function levelsOf(
  a: CompiledPolicy,
  b: CompiledPolicy,
  speaking: readonly Part[],
  call: PolicyCall,
): CountLevel[] {
  const counting = speaking.filter(({ entry }) => entry.section in KIND);
  let levels: CountLevel[] = [{ counted: [], texts: [] }];
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
      return { side, key: keys[side].get(`${KIND[part.entry.section as "limits"]} ${part.entry.id}`) };
    });
    levels = levels.flatMap((level) =>
      own.map(({ counted, texts }) => ({
        counted: [...level.counted, ...counted],
        texts: [...level.texts, ...texts],
      })),
    );
    if (levels.length > MAX_LEVELS) throw new UndecidableError("too many counts changed at once");
  }
  return levels;
}

function keysOf(policy: CompiledPolicy, call: PolicyCall): Map<string, string> {
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
  carries?: boolean;
  when?: readonly unknown[];
}

function docOf({ policy, entry }: Part): CountingDoc {
  return (policy.doc[entry.section] as readonly CountingDoc[])[entry.index]!;
}

function whatItCounts(part: Part): string {
  const { match, after, per, path } = docOf(part);
  const over = part.entry.section === "flows" ? spanOf(part) === null : per;
  return toCanonicalJson(
    asJson([part.entry.section, match ?? null, after ?? null, over ?? null, path ?? null]),
  );
}

/** Window length; null for a flow limited to its run. */
function spanOf(part: Part): number | null {
  const { window, within } = docOf(part);
  if (part.entry.section !== "flows") return parseDuration(window!);
  return within === undefined || within === "run" ? null : parseDuration(within);
}

/** Canonical text of what a flow asks of values; null for an entry that counts calls. */
function valueCondition(part: Part): string | null {
  const { carries = false, when = [] } = docOf(part);
  if (part.entry.section !== "flows" || (!carries && when.length === 0)) return null;
  return toCanonicalJson(asJson([carries, when]));
}

function groupLevels(group: readonly Part[], call: PolicyCall, place: Place): CountLevel[] {
  const amounts = new Set(group.flatMap((part) => amountsOf(part, call)));
  const spans = [...new Set(group.flatMap((part) => spanOf(part) ?? []))];
  const combinations = subsetsOf(new Set(group.flatMap((part) => valueCondition(part) ?? [])));
  // A charge exactly as old as a window is outside it, but inside longer ones.
  const ages = [0, ...spans];
  const levels: CountLevel[] = [{ counted: [], texts: [] }];
  for (const used of amounts) {
    for (const age_ms of ages) {
      const ago = age_ms === 0 ? "" : ` ${age_ms / 1000}s before`;
      for (const held of combinations) {
        const applying = group.filter((part) => isHeld(part, held));
        if (applying.length === 0) continue;
        const counted = applying.map((part) => countedAt(part, place(part), used, age_ms));
        const texts = [...new Set(applying.map((part) => toldOf(part, used) + ago))];
        levels.push({ counted, texts });
      }
      // If only one policy refunds, it can have a lower count of the same calls.
      const kept = group.filter((part) => docOf(part).refund !== true);
      if (kept.length === 0 || kept.length === group.length) continue;
      const without = kept.map((part) => countedAt(part, place(part), used, age_ms));
      const texts = [...new Set(group.map((part) => toldOf(part, used) + ago))];
      levels.push({ counted: without, texts: texts.map((text) => `${text}, and undone`) });
    }
  }
  return levels;
}

function subsetsOf(conditions: ReadonlySet<string>): ReadonlySet<string>[] {
  if (conditions.size > MAX_CONDITIONS)
    throw new UndecidableError("too many flows that look at values changed");
  let subsets: ReadonlySet<string>[] = [new Set()];
  for (const one of conditions) subsets = subsets.flatMap((known) => [known, new Set([...known, one])]);
  return subsets;
}

function isHeld(part: Part, held: ReadonlySet<string>): boolean {
  const condition = valueCondition(part);
  return condition === null || held.has(condition);
}

function countedAt(part: Part, place: ReturnType<Place>, used: number, age_ms: number): Counted {
  const counted = { ...place, used, age_ms };
  const isInside = age_ms < (spanOf(part) ?? Number.POSITIVE_INFINITY);
  return valueCondition(part) !== null && isInside ? { ...counted, assumed: part.entry.id } : counted;
}

function amountsOf(part: Part, call: PolicyCall): number[] {
  const { max = 0, path } = docOf(part);
  if (part.entry.section === "flows") return [1];
  if (part.entry.section === "limits") return max === 0 ? [] : [max];
  const value = readPath(parsePath(path!), { args: call.args, result: undefined });
  const amount = typeof value === "number" ? Math.max(0, value) : 0;
  return [max, max + 1, max - amount].filter((used) => used > 0);
}

function toldOf(part: Part, used: number): string {
  const { entry } = part;
  if (entry.section !== "flows") return `${KIND[entry.section as "limits"]} ${entry.id}: ${used} used`;
  if (valueCondition(part) === null) return `flow ${entry.id} was set off`;
  const what = docOf(part).carries === true ? "the call carries a value from" : "the call compares with";
  return `flow ${entry.id}: ${what} an earlier call`;
}

/** Flows of the side that look at values and apply at this level. */
export function assumedFlows({ counted }: CountLevel, side: "a" | "b"): Set<string> {
  return new Set(counted.flatMap((one) => (one.side === side ? (one.assumed ?? []) : [])));
}

export function countersFor(
  { counted }: CountLevel,
  side: "a" | "b",
  now_ms: number,
): Map<string, CounterDoc> {
  const counters = new Map<string, CounterDoc>();
  for (const one of counted) {
    if (one.side === side && one.key !== undefined)
      counters.set(one.key, { buckets: [[now_ms - one.age_ms, one.used]] });
  }
  return counters;
}
