/**
 * What the fields of a manifest entry must be to each other. The rules look at the raw value, so that
 * they also speak about an entry whose shape is wrong elsewhere: every problem is told at once.
 */
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { type Root, tryTemplatePath } from "../../kernel/paths.ts";
import { didYouMean } from "../problems.ts";
import type { Report } from "../yaml.ts";

const NEEDS_UNDO: ReadonlySet<Json> = new Set(["reversible", "compensable"]);
const NO_UNDO: Readonly<Record<string, string>> = {
  read: "a tool that only reads has nothing to undo",
  read_only: "a tool that only reads has nothing to undo",
  irreversible: "an irreversible tool cannot be undone",
};
/** A `$` and a letter is meant as a path; `$5` is plain text. */
const LOOKS_LIKE_PATH = /^\$[A-Za-z_]/;
const HOLDS_PATH = /\$(?:args|result|before)[.[]/;
const CALL: readonly Root[] = ["args", "result"];
const ALL: readonly Root[] = [...CALL, "before"];

export function entryRules(entry: JsonObject, report: Report): void {
  undoRules(entry, report);
  drillRules(entry, report);
  requiresRules(entry, report);
  riskRules(entry, report);
  const before = isJsonObject(entry["before"]) ? entry["before"] : undefined;
  const roots = before === undefined ? CALL : ALL;
  for (const field of ["compensation", "verification"] as const) {
    const section = entry[field];
    if (isJsonObject(section)) templateRules(section["args"], [field, "args"], report, roots);
  }
  if (before !== undefined) beforeRules(entry, before, report);
  const { compensation, verification } = entry;
  if (isJsonObject(compensation) && isJsonObject(compensation["when_absent"])) {
    templateRules(
      compensation["when_absent"]["args"],
      ["compensation", "when_absent", "args"],
      report,
      roots,
    );
    if (before?.["absent"] == null)
      report(
        ["compensation", "when_absent"],
        "is never used: before.absent says how it shows that nothing was there",
      );
  }
  if (before === undefined && isJsonObject(verification))
    strayBefore(verification["expect"], ["verification", "expect"], report);
}

function beforeRules(entry: JsonObject, before: JsonObject, report: Report): void {
  if (entry["effect"] === "read" || entry["effect"] === "read_only")
    report(["before"], "a tool that only reads changes nothing; remove it or change the effect");
  if (before["tool"] !== undefined && before["tool"] === entry["tool"])
    report(["before", "tool"], "is the tool itself; name one that only reads");
  templateRules(before["args"], ["before", "args"], report, ["args"]);
  const { absent } = before;
  if (isJsonObject(absent) && Object.keys(absent).length === 0)
    report(["before", "absent"], "matches every answer; write what only the answer for nothing there holds");
}

/** Without a `before` the text would be compared as it stands, and never be shown. */
function strayBefore(value: Json | undefined, path: (string | number)[], report: Report): void {
  if (typeof value === "string") {
    if (tryTemplatePath(value)?.root === "before") report(path, notThere("before"));
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) strayBefore(item, [...path, i], report);
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) strayBefore(value[name], [...path, name], report);
  }
}

function undoRules(entry: JsonObject, report: Report): void {
  const effect = entry["effect"] ?? null;
  const undo = entry["compensation"] ?? null;
  const readBack = entry["verification"] ?? null;
  if (undo === null && NEEDS_UNDO.has(effect)) {
    report(["compensation"], `is missing: effect ${String(effect)} needs the tool that undoes it`);
  }
  const why = typeof effect === "string" && Object.hasOwn(NO_UNDO, effect) ? NO_UNDO[effect] : undefined;
  if (undo !== null && why !== undefined) {
    report(["compensation"], `${why}; remove it or change the effect`);
  }
  if (readBack !== null && undo === null) {
    report(["verification"], "reads back an undo, and no compensation is declared; add one or remove this");
  }
  if (isJsonObject(readBack) && readBack["expect"] === undefined) {
    report(
      ["verification", "expect"],
      "is missing; write what the read-back must show, such as {deleted: true}",
    );
  }
}

/** A drill proves an undo by reading it back: without either there is nothing to prove, or nothing to prove it by. */
function drillRules(entry: JsonObject, report: Report): void {
  if ((entry["drill"] ?? null) === null) return;
  const effect = entry["effect"];
  const why = typeof effect === "string" && Object.hasOwn(NO_UNDO, effect) ? NO_UNDO[effect] : undefined;
  if (why !== undefined) report(["drill"], `${why}, so no drill can prove its undo; remove it`);
  else if ((entry["compensation"] ?? null) === null)
    report(["drill"], "proves an undo, and no compensation is declared; add one or remove this");
  else if ((entry["verification"] ?? null) === null)
    report(["drill"], "needs a verification: without a read-back nothing shows that the undo took effect");
}

function requiresRules(entry: JsonObject, report: Report): void {
  const requires = entry["requires"];
  if (!Array.isArray(requires)) return;
  const seen = new Set<Json>();
  for (const [i, tool] of requires.entries()) {
    if (tool === entry["tool"]) report(["requires", i], "a tool that requires itself could never run");
    if (typeof tool === "string" && seen.has(tool)) report(["requires", i], "is listed twice");
    seen.add(tool);
  }
}

/** Other labels are free, so a misspelt known one would be taken for one of them and quietly not count. */
function riskRules(entry: JsonObject, report: Report): void {
  const risk = entry["risk"];
  if (!isJsonObject(risk)) return;
  const known = ["data_class", "blast_radius"];
  for (const name of Object.keys(risk)) {
    const hint = known.includes(name) ? "" : didYouMean(name, known);
    if (hint !== "") report(["risk", name], `unknown label${hint}`);
  }
}

function templateRules(
  value: Json | undefined,
  path: (string | number)[],
  report: Report,
  roots: readonly Root[],
): void {
  if (typeof value === "string") {
    const found = tryTemplatePath(value);
    if (found !== undefined && roots.includes(found.root)) return;
    if (found !== undefined) report(path, notThere(found.root, roots));
    else if (LOOKS_LIKE_PATH.test(value)) {
      report(path, 'is not a path; write $args.name, $result.name, $args["any name"] or $args.list[0]');
    } else if (HOLDS_PATH.test(value)) {
      report(path, "holds a path inside other text; only a string that is a path as a whole is replaced");
    }
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) templateRules(item, [...path, i], report, roots);
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) templateRules(value[name], [...path, name], report, roots);
  }
}

function notThere(root: Root, roots: readonly Root[] = CALL): string {
  if (roots.length === 1) return `is a path into $${root}, which is not there before the call; use $args`;
  return "is a path into $before, and no before is declared; say with which tool it is read";
}
