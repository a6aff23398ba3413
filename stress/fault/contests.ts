/**
 * Races over four processes: many calls are prepared, everybody tries at once to move each of them, and every
 * answer is then compared with the ledger.
 */
import { openStore } from "../../src/store/open.ts";
import type { Linked } from "../../test/support/first-bad.ts";
import { auditStore } from "./audit.ts";
import { type Bench, WRITERS } from "./bench.ts";
import type { Attempt, AttemptResult, Place, Seeded, WorkerOps } from "./protocol.ts";
import { addFindings, newRow, type Row } from "./row.ts";
import type { Writer } from "./writer.ts";

const BATCH = 50;
const BATCHES_A_PLACE = 10;

/** What one of the processes tries with a call, all at once. */
export type Heat = (bench: Bench, writer: number) => Attempt["act"][];

export interface Contest {
  name: string;
  call: Parameters<WorkerOps["seed"]>[0]["call"];
  /** One after the other; within a heat everybody tries at the same time. */
  heats: readonly Heat[];
  /** Faults in the answers for a call, given the records of its run. */
  objections(results: readonly AttemptResult[], trail: readonly Linked[]): string[];
}

export async function contests(bench: Bench, contest: Contest): Promise<Row> {
  const row = newRow(bench.store, contest.name);
  while (row.trials < bench.count) {
    const place = await bench.places.make(bench.store);
    const writers = await bench.crew.hireAll(WRITERS, place);
    const results = new Map<string, AttemptResult[]>();
    for (let batch = 0; batch < BATCHES_A_PLACE && row.trials + results.size < bench.count; batch++) {
      const input = { label: `b${batch}`, count: BATCH, call: contest.call };
      const seeded = await writers[batch % WRITERS]!.ask("seed", input);
      for (const heat of contest.heats) {
        for (const one of await race(bench, writers, seeded, heat))
          results.set(one.run_id, [...(results.get(one.run_id) ?? []), one]);
      }
    }
    await bench.crew.dismiss(...writers);
    await judge(row, place, contest, results);
    await place.dispose();
  }
  return row;
}

async function race(bench: Bench, writers: Writer[], seeded: Seeded[], heat: Heat): Promise<AttemptResult[]> {
  const results = writers.map((writer, number) => {
    const attempts = seeded.flatMap((one) =>
      heat(bench, number).map((act): Attempt => ({ ...one, act, by: `person${number}` })),
    );
    return writer.ask("attempt", attempts);
  });
  return (await Promise.all(results)).flat();
}

async function judge(
  row: Row,
  place: Place,
  { objections }: Contest,
  contested: ReadonlyMap<string, AttemptResult[]>,
): Promise<void> {
  const store = await openStore({ ...place, warn: () => {} });
  const { findings, records } = await auditStore(store, []);
  await store.close();
  addFindings(row, findings);
  const trails = new Map<string, Linked[]>();
  for (const record of records) {
    const run_id = String(record["run_id"]);
    trails.set(run_id, [...(trails.get(run_id) ?? []), record]);
  }
  for (const [run_id, results] of contested) {
    row.answers += results.length;
    if (isContested(results)) row.trials++;
    for (const problem of objections(results, trails.get(run_id) ?? []))
      row.problems.push(`${run_id}: ${problem}`);
  }
}

/** Somebody who lost had asked before the first winner was answered. */
function isContested(results: readonly AttemptResult[]): boolean {
  const winners = results.filter(({ won }) => won);
  const first = winners.find(({ act }) => act !== "use") ?? winners[0];
  return results.some(({ won, asked }) => !won && first !== undefined && asked < first.answered);
}
