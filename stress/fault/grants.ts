/**
 * One use of a grant, four processes: everybody makes the call that it covers, and its giver revokes it now and
 * then. It lets exactly one call through, or none if it was revoked first.
 */
import type { Linked } from "../../test/support/first-bad.ts";
import type { Bench } from "./bench.ts";
import { contests, type Heat } from "./contests.ts";
import type { Attempt, AttemptResult } from "./protocol.ts";
import type { Row } from "./row.ts";

const useHeat: Heat = ({ random }, writer) =>
  writer === 0 && random() < 0.3 ? ["revoke", "use"] : ["use", "use"];

export function grants(bench: Bench): Promise<Row> {
  return contests(bench, { name: "contested grants", call: "granted", heats: [useHeat], objections });
}

function objections(results: readonly AttemptResult[], trail: readonly Linked[]): string[] {
  const won = (act: Attempt["act"]): number => results.filter((one) => one.act === act && one.won).length;
  const uses = trail.filter((record) => String(record["detail"] ?? "").startsWith("used grant ")).length;
  const made = trail.filter(({ event }) => event === "intended").length;
  const found: string[] = [];
  if (won("use") > 1) found.push(`${won("use")} calls allowed on one use`);
  if (won("use") !== made) found.push(`${won("use")} calls allowed, ${made} recorded`);
  if (uses !== made) found.push(`${made} calls on ${uses} uses of a grant`);
  if (won("use") === 0 && won("revoke") === 0) found.push("granted, not revoked, and nobody could use it");
  return found;
}
