/** Searches a product of variables and prunes branches that cannot contain a result. */
import { UndecidableError } from "./automata/machine.ts";
import type { CallVariable, TestLiteral, ValueAtom } from "./domain.ts";

/** Limits of a search: number of calls, and time. */
export interface SearchBudget {
  cells: number;
  /** True if time has run out. */
  late(): boolean;
}

export type ChosenAtoms = Map<CallVariable, ValueAtom>;

/** Value of a conjunction under the current choices; null if still undetermined. */
export function evaluateConjunction(literals: readonly TestLiteral[], chosen: ChosenAtoms): boolean | null {
  let open = false;
  for (const { variable, test } of literals) {
    const atom = chosen.get(variable);
    if (atom === undefined) open = true;
    else if (atom.truths[test] === 0) return false;
  }
  return open ? null : true;
}

/** Calls `leaf` for every combination that `cut` does not prune. Stops when `leaf` returns true. */
export function exploreProduct(
  variables: readonly CallVariable[],
  cut: (chosen: ChosenAtoms) => boolean,
  leaf: (chosen: ChosenAtoms) => boolean,
  budget: SearchBudget,
): boolean {
  const chosen: ChosenAtoms = new Map();
  const go = (i: number): boolean => {
    if (cut(chosen)) return false;
    const variable = variables[i];
    if (variable === undefined) {
      budget.cells--;
      if (budget.cells < 0) throw new UndecidableError("there are too many kinds of calls");
      if (budget.cells % 64 === 0 && budget.late()) throw new UndecidableError("the time limit was reached");
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

/** Orders variables by influence: those of `first`, then those with the most tests. */
export function orderVariables(
  variables: readonly CallVariable[],
  first: readonly TestLiteral[],
): CallVariable[] {
  const early = new Set(first.map(({ variable }) => variable));
  const weight = (variable: CallVariable) => (early.has(variable) ? 1_000_000 : 0) + variable.tests.length;
  return [...variables].sort((a, b) => weight(b) - weight(a));
}
