/** Walking through a product of variables, leaving out at once what cannot hold an answer. */
import type { Atom, Literal, Variable } from "./domain.ts";
import { Undecidable } from "./machine.ts";

/** How much may be looked at: calls, and until when. */
export interface SearchBudget {
  cells: number;
  /** Whether the time for it is over. */
  late(): boolean;
}

export type Chosen = Map<Variable, Atom>;

/** Whether a conjunction holds by what is chosen so far: null while that is open. */
export function holds(literals: readonly Literal[], chosen: Chosen): boolean | null {
  let open = false;
  for (const { variable, test } of literals) {
    const atom = chosen.get(variable);
    if (atom === undefined) open = true;
    else if (atom.truths[test] === 0) return false;
  }
  return open ? null : true;
}

/** Whether some of the literals are there but not to be compared. */
export function unsure(literals: readonly Literal[], chosen: Chosen): boolean {
  return literals.some(({ variable, test }) => chosen.get(variable)?.truths[test] === 2);
}

/** Calls `leaf` for every combination that `cut` does not cut off; ends when `leaf` answers true. */
export function explore(
  variables: readonly Variable[],
  cut: (chosen: Chosen) => boolean,
  leaf: (chosen: Chosen) => boolean,
  budget: SearchBudget,
): boolean {
  const chosen: Chosen = new Map();
  const go = (i: number): boolean => {
    if (cut(chosen)) return false;
    const variable = variables[i];
    if (variable === undefined) {
      budget.cells--;
      if (budget.cells < 0) throw new Undecidable("there are too many kinds of calls");
      if (budget.cells % 64 === 0 && budget.late()) throw new Undecidable("the time was used up");
      return leaf(chosen);
    }
    for (const atom of variable.atoms) {
      chosen.set(variable, atom);
      if (go(i + 1)) return true;
    }
    chosen.delete(variable);
    return false;
  };
  return go(0);
}

/** Variables that decide much come first: those of `first`, then those that many tests ask. */
export function ordered(variables: readonly Variable[], first: readonly Literal[]): Variable[] {
  const early = new Set(first.map(({ variable }) => variable));
  const weight = (variable: Variable) => (early.has(variable) ? 1_000_000 : 0) + variable.tests.length;
  return [...variables].sort((a, b) => weight(b) - weight(a));
}
