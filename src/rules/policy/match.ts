/**
 * Index of the entries that can match a call, by the literal prefix of their tool glob, so that a call is not tested
 * against ten thousand entries.
 */
import { type CompiledGlob, compileGlob } from "../../kernel/text/glob.ts";
import type { PolicyCall } from "./call.ts";
import { type EntryGuard, RuleIndex } from "./rule-index.ts";
import { MATCH_FIELDS, type MatchDoc, type MatchField } from "./schema.ts";

export type EntryMatch = (call: PolicyCall) => boolean;

/** All fields except the tool, which the index tests. */
const OTHER_FIELDS = MATCH_FIELDS.filter((field) => field !== "tool");

/** True for labels with any number of values. One value must match, so even `*` needs a value. */
function isLabel(field: MatchField): field is "source" | "sink" | "acting" {
  return field === "source" || field === "sink" || field === "acting";
}

/** Other missing values read as empty text: `*` matches, a name does not. */
function compileMatch(match: MatchDoc | undefined): {
  tool: CompiledGlob | null;
  others: [(typeof OTHER_FIELDS)[number], CompiledGlob][];
} {
  const others: [(typeof OTHER_FIELDS)[number], CompiledGlob][] = [];
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
  readonly tool: CompiledGlob | null;
  readonly others: readonly (readonly [(typeof OTHER_FIELDS)[number], CompiledGlob])[];
}

/** Entries with the same literal prefix, also indexed by their conditions. */
interface List<T> {
  readonly entries: Entry<T>[];
  readonly index: RuleIndex<Entry<T>>;
}

/** Up to this number, testing each entry is faster than a lookup. */
const FEW = 16;

export class MatchIndex<T> {
  private readonly items: T[] = [];
  private readonly exact = new Map<string, List<T>>();
  private readonly byPrefix = new Map<string, List<T>>();
  /** Distinct lengths of the literal prefixes: one lookup per length, however many entries exist. */
  private readonly lengths: number[] = [];

  constructor(items: readonly { match: MatchDoc | undefined; item: T }[] = []) {
    for (const { match, item } of items) this.add(match, item);
  }

  /** Adds the next entry, in policy order. A guard is a condition that must hold for the entry to apply. */
  add(match: MatchDoc | undefined, item: T, guard?: EntryGuard): void {
    const entry: Entry<T> = { order: this.items.length, item, ...compileMatch(match) };
    this.items.push(item);
    for (const { prefix, exact } of entry.tool?.prefixes ?? [{ prefix: "", exact: false }]) {
      const map = exact ? this.exact : this.byPrefix;
      const known = map.get(prefix);
      const list = known ?? { entries: [], index: new RuleIndex<Entry<T>>() };
      if (known === undefined) map.set(prefix, list);
      if (list.entries[list.entries.length - 1] === entry) continue;
      list.entries.push(entry);
      list.index.add(entry, guard);
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

  /** All items, in policy order. */
  all(): readonly T[] {
    return this.items;
  }

  /** Items that match the call and whose guards can hold for it, in policy order. */
  matching(call: PolicyCall): T[] {
    if (this.size === 0) return [];
    const found: Entry<T>[] = [];
    let lists = 0;
    const take = (list: List<T> | undefined) => {
      if (list === undefined) return;
      const few = list.entries.length <= FEW;
      lists += few ? 1 : 2;
      for (const entry of few ? list.entries : list.index.could(call.args)) {
        if ((entry.tool === null || entry.tool.test(call.tool)) && othersMatch(entry, call))
          found.push(entry);
      }
    };
    take(this.exact.get(call.tool));
    for (const length of this.lengths) {
      if (length > call.tool.length) break;
      take(this.byPrefix.get(call.tool.slice(0, length)));
    }
    // Several lists or a rule index can mix up the order, or return an entry with alternatives twice.
    if (lists > 1) found.sort((a, b) => a.order - b.order);
    return found.filter((entry, i) => entry !== found[i - 1]).map((entry) => entry.item);
  }
}

function othersMatch(entry: Entry<unknown>, call: PolicyCall): boolean {
  return entry.others.every(([field, glob]) => {
    if (isLabel(field)) return (call[field] ?? []).some((label) => glob.test(label));
    const value = call[field] ?? "";
    if (field !== "effect" || (value !== "read" && value !== "read_only")) return glob.test(value);
    return glob.test("read") || glob.test("read_only");
  });
}
