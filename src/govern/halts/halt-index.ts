/**
 * Index of the active halts, rebuilt once per change. A call checks the halts that name its actor, tool or tenant
 * literally, and halts with only patterns, so ten thousand other halts cost nothing.
 */
import { type CompiledGlob, compileGlob, isGlob } from "../../kernel/text/glob.ts";
import { HALT_FIELDS, type StoredHalt } from "../approvals/approval.ts";

type HaltedValues = { [field in (typeof HALT_FIELDS)[number]]: string | null };
type Field = (typeof HALT_FIELDS)[number];

interface Compiled {
  order: number;
  halt: StoredHalt;
  /** A field without a pattern covers everything. */
  patterns: readonly (readonly [Field, CompiledGlob | string])[];
}

/** Most selective field first. */
const NAMED_BY: readonly Field[] = ["actor", "tool", "tenant"];

class HaltIndex {
  private readonly named = new Map<string, Compiled[]>();
  private readonly rest: Compiled[] = [];

  constructor(halts: readonly StoredHalt[]) {
    for (const [order, halt] of halts.entries()) {
      const compiled = { order, halt, patterns: patternsOf(halt) };
      const by = compiled.patterns
        .filter(([field, pattern]) => NAMED_BY.includes(field) && typeof pattern === "string")
        .sort(([a], [b]) => NAMED_BY.indexOf(a) - NAMED_BY.indexOf(b))[0];
      if (by === undefined) this.rest.push(compiled);
      else this.entries(by[0], by[1] as string).push(compiled);
    }
  }

  covering(values: HaltedValues): StoredHalt[] {
    const found: Compiled[] = [];
    const look = (candidates: readonly Compiled[] | undefined) => {
      for (const one of candidates ?? []) if (covers(one, values)) found.push(one);
    };
    look(this.rest);
    for (const field of NAMED_BY) look(this.named.get(`${field} ${values[field]}`));
    return found.sort((a, b) => a.order - b.order).map(({ halt }) => halt);
  }

  private entries(field: Field, name: string): Compiled[] {
    const key = `${field} ${name}`;
    const known = this.named.get(key) ?? [];
    this.named.set(key, known);
    return known;
  }
}

function patternsOf({ scope, literal }: StoredHalt): Compiled["patterns"] {
  return HALT_FIELDS.flatMap((field) => {
    const pattern = scope[field];
    if (field === "actor" && literal === true) return [[field, pattern!] as const];
    if (pattern === null || pattern === "*") return [];
    return [[field, isGlob(pattern) ? compileGlob(pattern) : pattern] as const];
  });
}

function covers({ patterns }: Compiled, values: HaltedValues): boolean {
  return patterns.every(([field, pattern]) => {
    const value = values[field];
    return value !== null && (typeof pattern === "string" ? pattern === value : pattern.test(value));
  });
}

const known = new WeakMap<readonly StoredHalt[], HaltIndex>();

/** Halts that cover a call, in creation order. */
export function haltsCovering(halts: readonly StoredHalt[], values: HaltedValues): StoredHalt[] {
  if (halts.length === 0) return [];
  let index = known.get(halts);
  if (index === undefined) {
    index = new HaltIndex(halts);
    known.set(halts, index);
  }
  return index.covering(values);
}
