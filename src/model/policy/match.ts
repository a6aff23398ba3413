/**
 * Which entries of a policy concern a call. Entries are kept by the literal start of their tool glob, so
 * that a call is tested against those that could match it and not against ten thousand others.
 */
import { compileGlob, type Glob } from "../../kernel/glob.ts";
import type { PolicyCall } from "./call.ts";
import { MATCH_FIELDS, type MatchDoc, type MatchField } from "./schema.ts";
import { type EntryGuard, Sieve } from "./sieve.ts";

export type Match = (call: PolicyCall) => boolean;

/** Everything but the tool, which the index asks for itself. */
const OTHER_FIELDS = MATCH_FIELDS.filter((field) => field !== "tool");

/** Labels of which a call may have several or none: one of them has to match, so even `*` asks for one. */
function isLabel(field: MatchField): field is "source" | "sink" {
  return field === "source" || field === "sink";
}

/** Any other value that is not there reads as empty text: `*` matches it, a name does not. */
function compileMatch(match: MatchDoc | undefined): {
  tool: Glob | null;
  others: [(typeof OTHER_FIELDS)[number], Glob][];
} {
  const others: [(typeof OTHER_FIELDS)[number], Glob][] = [];
  for (const field of OTHER_FIELDS) {
    const source = match?.[field];
    const anything = source === "*" && !isLabel(field);
    if (source !== undefined && !anything) others.push([field, compileGlob(source)]);
  }
  return { tool: match?.tool === undefined || match.tool === "*" ? null : compileGlob(match.tool), others };
}

interface Entry<T> {
  readonly order: number;
  readonly item: T;
  readonly tool: Glob | null;
  readonly others: readonly (readonly [(typeof OTHER_FIELDS)[number], Glob])[];
}

/** Entries with the same literal start, and the same by their conditions. */
interface List<T> {
  readonly entries: Entry<T>[];
  readonly sieve: Sieve<Entry<T>>;
}

/** So few are tested one by one before they are looked up. */
const FEW = 16;

export class MatchIndex<T> {
  private readonly items: T[] = [];
  private readonly exact = new Map<string, List<T>>();
  private readonly byPrefix = new Map<string, List<T>>();
  /** The lengths that literal starts have: one lookup for each, however many entries there are. */
  private readonly lengths: number[] = [];

  constructor(items: readonly { match: MatchDoc | undefined; item: T }[] = []) {
    for (const { match, item } of items) this.add(match, item);
  }

  /** The next entry, in the order of the policy; a guard is a condition without which it says nothing. */
  add(match: MatchDoc | undefined, item: T, guard?: EntryGuard): void {
    const entry: Entry<T> = { order: this.items.length, item, ...compileMatch(match) };
    this.items.push(item);
    for (const { prefix, exact } of entry.tool?.prefixes ?? [{ prefix: "", exact: false }]) {
      const map = exact ? this.exact : this.byPrefix;
      const known = map.get(prefix);
      const list = known ?? { entries: [], sieve: new Sieve<Entry<T>>() };
      if (known === undefined) map.set(prefix, list);
      if (list.entries[list.entries.length - 1] === entry) continue;
      list.entries.push(entry);
      list.sieve.add(entry, guard);
      if (!exact && known === undefined) this.noteLength(prefix.length);
    }
  }

  private noteLength(length: number): void {
    if (this.lengths.includes(length)) return;
    this.lengths.push(length);
    this.lengths.sort((a, b) => a - b);
  }

  get size(): number {
    return this.items.length;
  }

  /** Every item, in the order of the policy. */
  all(): readonly T[] {
    return this.items;
  }

  /** The items that match the call and whose guards may hold for it, in the order of the policy. */
  matching(call: PolicyCall): T[] {
    if (this.size === 0) return [];
    const found: Entry<T>[] = [];
    let lists = 0;
    const take = (list: List<T> | undefined) => {
      if (list === undefined) return;
      const few = list.entries.length <= FEW;
      lists += few ? 1 : 2;
      for (const entry of few ? list.entries : list.sieve.could(call.args)) {
        if ((entry.tool === null || entry.tool.test(call.tool)) && othersMatch(entry, call))
          found.push(entry);
      }
    };
    take(this.exact.get(call.tool));
    for (const length of this.lengths) {
      if (length > call.tool.length) break;
      take(this.byPrefix.get(call.tool.slice(0, length)));
    }
    // Only several lists, or a sieve, can put entries out of order, or bring one with alternatives twice.
    if (lists > 1) found.sort((a, b) => a.order - b.order);
    return found.filter((entry, i) => entry !== found[i - 1]).map((entry) => entry.item);
  }
}

function othersMatch(entry: Entry<unknown>, call: PolicyCall): boolean {
  return entry.others.every(([field, glob]) => {
    if (isLabel(field)) return call[field].some((label) => glob.test(label));
    const value = call[field] ?? "";
    if (field !== "effect" || (value !== "read" && value !== "read_only")) return glob.test(value);
    return glob.test("read") || glob.test("read_only");
  });
}
