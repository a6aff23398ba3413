/** One accepted call, four processes: two report its outcome, two operators reconcile it. One of them is believed. */
import type { Linked } from "../../test/support/first-bad.ts";
import type { Bench } from "./bench.ts";
import { contests, type Heat } from "./contests.ts";
import type { AttemptResult } from "./protocol.ts";
import type { Row } from "./row.ts";

const finishHeat: Heat = (_, writer) => (writer % 2 === 0 ? ["report", "resolve"] : ["resolve", "report"]);

export function outcomes(bench: Bench): Promise<Row> {
  return contests(bench, { name: "contested outcomes", call: "accepted", heats: [finishHeat], objections });
}

function objections(results: readonly AttemptResult[], trail: readonly Linked[]): string[] {
  const winners = results.filter(({ won }) => won);
  if (winners.length !== 1) return [`${winners.length} outcomes were answered as taken`];
  const told = winners[0]!.act === "report" ? "succeeded" : "failed";
  const events = trail.map(({ event }) => event).join();
  return events === `intended,${told}` ? [] : [`answered ${told}, recorded ${events}`];
}
