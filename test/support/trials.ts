/**
 * How a test of a fault tells the fault run (`npm run fault`) what it has tried: called once everything that
 * must hold has been checked, with the number of trials in which the fault hit something. Silent otherwise.
 */
import { appendFileSync } from "node:fs";
import type { StoreKind } from "../../src/store/open.ts";

export interface Trials {
  /** `any` for a fault in which the store has no part. */
  store: StoreKind | "any";
  fault: string;
  trials: number;
}

export const TRIALS_FILE = "SVC_TRIALS_FILE";

export function countTrials(store: Trials["store"], fault: string, trials: number): void {
  const file = process.env[TRIALS_FILE];
  if (file) appendFileSync(file, `${JSON.stringify({ store, fault, trials } satisfies Trials)}\n`);
}
