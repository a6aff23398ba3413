/**
 * One request, four processes: two people decide it, its time runs out, and the agent tries to use it, all at
 * once. One decision stands; an approval lets exactly one call through; nothing else does.
 */

import { openStore } from "../../src/store/open.ts";
import type { Linked } from "../../test/support/first-bad.ts";
import { auditStore } from "./audit.ts";
import { type Bench, WRITERS } from "./bench.ts";
import type { Attempt, AttemptResult, Place, Seeded } from "./protocol.ts";
import { addFindings, newRow, type Row } from "./row.ts";
import type { Writer } from "./writer.ts";

const BATCH = 50;
const BATCHES_A_PLACE = 10;

/** What each process tries in the first heat; the third only sometimes, or most requests would just expire. */
const DECIDES: readonly Attempt["act"][] = ["approve", "deny", "expire", "approve"];

export async function approvals(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "contested approvals");
  while (row.trials < bench.count) {
    const place = await bench.places.make(bench.store);
    const writers = await bench.crew.hireAll(WRITERS, place);
    const contests = new Map<string, AttemptResult[]>();
    for (let batch = 0; batch < BATCHES_A_PLACE && row.trials + contests.size < bench.count; batch++) {
      const seeded = await writers[batch % WRITERS]!.ask("seed", { label: `b${batch}`, count: BATCH });
      const results = [
        ...(await race(bench, writers, seeded, decideHeat)),
        ...(await race(bench, writers, seeded, useHeat)),
      ];
      for (const one of results) contests.set(one.run_id, [...(contests.get(one.run_id) ?? []), one]);
    }
    await bench.crew.dismiss(...writers);
    await judge(row, place, contests);
    await place.dispose();
  }
  return row;
}

type Heat = (bench: Bench, writer: number) => Attempt["act"][];

/** Approve against deny against expiry, and somebody who cannot wait to use it. */
const decideHeat: Heat = ({ random }, writer) => {
  const act = DECIDES[writer]!;
  return act === "expire" && random() < 0.8 ? ["use"] : [act, "use"];
};

/** Everybody uses it, and its time may run out meanwhile. */
const useHeat: Heat = ({ random }) => (random() < 0.05 ? ["use", "expire", "use"] : ["use", "use"]);

async function race(bench: Bench, writers: Writer[], seeded: Seeded[], heat: Heat): Promise<AttemptResult[]> {
  const results = writers.map((writer, number) => {
    const attempts = seeded.flatMap((one) =>
      heat(bench, number).map((act): Attempt => ({ ...one, act, by: `person${number}` })),
    );
    return writer.ask("attempt", attempts);
  });
  return (await Promise.all(results)).flat();
}

/** Holds what was answered to what was recorded. */
async function judge(row: Row, place: Place, contests: Map<string, AttemptResult[]>): Promise<void> {
  const store = await openStore({ ...place, warn: () => {} });
  const { findings, records } = await auditStore(store, []);
  await store.close();
  addFindings(row, findings);
  const trails = new Map<string, Linked[]>();
  for (const record of records) {
    const run_id = String(record["run_id"]);
    trails.set(run_id, [...(trails.get(run_id) ?? []), record]);
  }
  for (const [run_id, results] of contests) {
    row.answers += results.length;
    if (isContested(results)) row.trials++;
    for (const problem of objections(results, trails.get(run_id) ?? []))
      row.problems.push(`${run_id}: ${problem}`);
  }
}

/** Somebody who lost had asked before the winner was answered. */
function isContested(results: readonly AttemptResult[]): boolean {
  const decided = results.find(({ act, won }) => won && act !== "use");
  return results.some(({ won, asked }) => !won && decided !== undefined && asked < decided.answered);
}

function objections(results: readonly AttemptResult[], trail: readonly Linked[]): string[] {
  const won = (act: Attempt["act"]): number => results.filter((one) => one.act === act && one.won).length;
  const wrote = (event: string, by?: string): number =>
    trail.filter((record) => record.event === event && (by === undefined || record["actor"] === by)).length;
  const byEngine = wrote("approved", "engine");
  const byPeople = wrote("approved") - byEngine;
  const found: string[] = [];
  // Losers of the second heat open requests of their own, and those may run out as well.
  if (won("approve") + won("deny") > 1) found.push("two decisions were answered as made");
  if (byPeople !== won("approve")) found.push(`${won("approve")} approvals answered, ${byPeople} recorded`);
  if (wrote("denied") !== won("deny"))
    found.push(`${won("deny")} denials answered, ${wrote("denied")} recorded`);
  if (wrote("approval_expired") !== won("expire")) found.push("expiries answered and recorded differ");
  if (wrote("intended") !== won("use"))
    found.push(`${won("use")} calls allowed, ${wrote("intended")} recorded`);
  if (won("use") !== byEngine) found.push(`${won("use")} calls allowed on ${byEngine} uses of an approval`);
  if (won("use") > won("approve")) found.push(`${won("use")} calls allowed on ${won("approve")} approvals`);
  if (won("approve") === 1 && won("use") === 0 && won("expire") === 0)
    found.push("approved, not expired, and nobody could use it");
  return found;
}
