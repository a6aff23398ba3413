/** One line of the table that the fault run prints: a fault, a store, and the result. */
import type { StoreKind } from "../../src/store/open.ts";
import { type Findings, nothingWrong } from "./audit.ts";

export interface Row extends Findings {
  /** `any` for what a store has no part in. */
  store: StoreKind | "any";
  fault: string;
  /** Trials in which the fault hit something that was under way. */
  trials: number;
  /** Answers that were given and then looked for. */
  answers: number;
  /** The trials are those of a test, which checks what it finds itself; nothing is counted here. */
  is_test?: true;
  /** What else must hold and did not, in words. */
  problems: string[];
}

export function newRow(store: Row["store"], fault: string): Row {
  return { store, fault, trials: 0, answers: 0, problems: [], ...nothingWrong() };
}

export function addFindings(row: Row, findings: Findings): void {
  for (const name of Object.keys(findings) as (keyof Findings)[]) row[name] += findings[name];
}

/** A fault that hit nothing has proved nothing. */
export function isClean(row: Row): boolean {
  const wrong = row.lost + row.forks + row.broken_chains + row.bare_allows + row.half_units;
  return wrong === 0 && row.problems.length === 0 && row.trials > 0;
}
