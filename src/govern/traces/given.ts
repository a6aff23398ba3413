/** Reads and writes which values a run was given, so that a simulation knows them without the texts. */
import { allRows } from "../port/pages.ts";
import type { StateStore, StoreTx } from "../port/store.ts";
import { marksKey, newTrace, type TraceMark } from "./trace.ts";

/** Fingerprints of given values, with the key of the run that they belong to. */
export interface GivenValues {
  salt: string;
  fingerprints: readonly number[];
}

/** The values of people's texts, and those that results without a source label held first. Undefined without texts. */
export async function readGivenValues(store: StateStore, run_id: string): Promise<GivenValues | undefined> {
  const [run, trace] = await Promise.all([store.get("runs", run_id), store.get("traces", run_id)]);
  if (run === undefined || trace?.texts === undefined) return undefined;
  const fingerprints: number[] = [];
  for await (const { doc } of allRows(store, "trace_marks", { owner: run_id }))
    for (const [fingerprint, mark] of Object.entries(doc.marks))
      if (mark === 0) fingerprints.push(Number(fingerprint));
  return { salt: run.salt, fingerprints };
}

/** For a run without any followed value. */
export function writeGivenValues(tx: StoreTx, run_id: string, fingerprints: readonly number[]): void {
  const parts = new Map<string, Record<string, TraceMark>>();
  for (const fingerprint of fingerprints) {
    const key = marksKey(run_id, fingerprint);
    const part = parts.get(key) ?? {};
    part[fingerprint] = 0;
    parts.set(key, part);
  }
  for (const [key, marks] of parts) tx.put("trace_marks", key, { run_id, marks });
  tx.put("traces", run_id, { ...newTrace(run_id), given: fingerprints.length });
}
