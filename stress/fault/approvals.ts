/**
 * One request, four processes: two people decide it, its time runs out, and the agent tries to use it, all at
 * once. One decision counts; an approval lets exactly one call through; nothing else does.
 */
import type { Linked } from "../../test/support/first-bad.ts";
import type { Bench } from "./bench.ts";
import { contests, type Heat } from "./contests.ts";
import type { Attempt, AttemptResult } from "./protocol.ts";
import type { Row } from "./row.ts";

/** What each process tries in the first heat; the third only sometimes, or most requests would just expire. */
const DECIDES: readonly Attempt["act"][] = ["approve", "deny", "expire", "approve"];

export function approvals(bench: Bench): Promise<Row> {
  const heats = [decideHeat, useHeat];
  return contests(bench, { name: "contested approvals", call: "waiting", heats, objections });
}

/** Approve against deny against expiry, and somebody who cannot wait to use it. */
const decideHeat: Heat = ({ random }, writer) => {
  const act = DECIDES[writer]!;
  return act === "expire" && random() < 0.8 ? ["use"] : [act, "use"];
};

/** Everybody uses it, and its time may run out at the same moment. */
const useHeat: Heat = ({ random }) => (random() < 0.05 ? ["use", "expire", "use"] : ["use", "use"]);

function objections(results: readonly AttemptResult[], trail: readonly Linked[]): string[] {
  const won = (act: Attempt["act"]): number => results.filter((one) => one.act === act && one.won).length;
  const wrote = (event: string, by?: string): number =>
    trail.filter((record) => record.event === event && (by === undefined || record["actor"] === by)).length;
  const byEngine = wrote("approved", "engine");
  const byPeople = wrote("approved") - byEngine;
  const found: string[] = [];
  // Losers of the second heat open their own requests, and those may run out as well.
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
