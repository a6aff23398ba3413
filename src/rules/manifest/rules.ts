/**
 * Rules across the fields of a manifest entry. They read the raw value, so that an entry with a wrong shape still gets
 * all its problems reported at once.
 */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { type PathRoot, tryTemplatePath } from "../../kernel/paths.ts";
import { didYouMean } from "../schema-problems.ts";
import type { ReportProblem } from "../yaml.ts";

const NEEDS_UNDO: ReadonlySet<JsonValue> = new Set(["reversible", "compensable"]);
const NO_UNDO: Readonly<Record<string, string>> = {
  read: "a tool that only reads has nothing to undo",
  read_only: "a tool that only reads has nothing to undo",
  irreversible: "an irreversible tool cannot be undone",
};
/** Matches `$` and a letter, which is meant as a path; `$5` is plain text. */
const LOOKS_LIKE_PATH = /^\$[A-Za-z_]/;
const HOLDS_PATH = /\$(?:args|result|before)[.[]/;
const CALL: readonly PathRoot[] = ["args", "result"];
const ALL: readonly PathRoot[] = [...CALL, "before"];

export function entryRules(entry: JsonObject, report: ReportProblem): void {
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
  effectCheckRules(entry, report, roots);
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
        "is never used: it needs before.absent, which defines the answer for a missing target",
      );
  }
  if (before === undefined && isJsonObject(verification))
    strayBefore(verification["expect"], ["verification", "expect"], report);
}

function beforeRules(entry: JsonObject, before: JsonObject, report: ReportProblem): void {
  if (isRead(entry) && !reportsParts(entry))
    report(["before"], "a tool that only reads changes nothing; remove it or change the effect");
  if (before["tool"] !== undefined && before["tool"] === entry["tool"])
    report(["before", "tool"], "is the tool itself; name one that only reads");
  const roots: PathRoot[] = before["required"] === false ? ["args", "before"] : ["args"];
  templateRules(before["args"], ["before", "args"], report, roots);
  const { absent } = before;
  if (isJsonObject(absent) && Object.keys(absent).length === 0)
    report(
      ["before", "absent"],
      "matches every answer; write members that only the answer for a missing target has",
    );
}

function effectCheckRules(entry: JsonObject, report: ReportProblem, roots: readonly PathRoot[]): void {
  const { effect_check: check, effect } = entry;
  if (!isJsonObject(check)) return;
  if (effect === "read" || effect === "read_only")
    report(["effect_check"], "a tool that only reads has no effect; remove it or change the effect");
  if (check["tool"] !== undefined && check["tool"] === entry["tool"])
    report(["effect_check", "tool"], "is the tool itself; name one that only reads");
  templateRules(check["args"], ["effect_check", "args"], report, roots);
  const { expect } = check;
  if (expect === undefined)
    report(
      ["effect_check", "expect"],
      "is missing; write the answer that shows the effect, such as {name: $args.name}",
    );
  else if (isJsonObject(expect) && Object.keys(expect).length === 0)
    report(["effect_check", "expect"], "matches every answer; write members that only the effect explains");
  else if (!roots.includes("before")) strayBefore(expect, ["effect_check", "expect"], report);
}

/** Without a `before` read, the text would be compared literally and never shown. */
function strayBefore(value: JsonValue | undefined, path: (string | number)[], report: ReportProblem): void {
  if (typeof value === "string") {
    if (tryTemplatePath(value)?.root === "before") report(path, notThere("before"));
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) strayBefore(item, [...path, i], report);
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) strayBefore(value[name], [...path, name], report);
  }
}

function undoRules(entry: JsonObject, report: ReportProblem): void {
  const effect = entry["effect"] ?? null;
  const undo = entry["compensation"] ?? null;
  const readBack = entry["verification"] ?? null;
  if (undo === null && NEEDS_UNDO.has(effect)) {
    report(["compensation"], `is missing: effect ${String(effect)} needs the tool that undoes it`);
  }
  const why = typeof effect === "string" && Object.hasOwn(NO_UNDO, effect) ? NO_UNDO[effect] : undefined;
  if (undo !== null && why !== undefined && !reportsParts(entry)) {
    report(["compensation"], `${why}; remove it or change the effect`);
  }
  if (readBack !== null && undo === null) {
    report(["verification"], "verifies an undo, but no compensation is declared; add one or remove this");
  }
  if (isJsonObject(readBack) && readBack["expect"] === undefined) {
    report(
      ["verification", "expect"],
      "is missing; write the expected answer of the read-back, such as {deleted: true}",
    );
  }
}

const isRead = ({ effect }: JsonObject): boolean => effect === "read" || effect === "read_only";

/** A read during which something changed reports what, so that an undo names it. */
function reportsParts(entry: JsonObject): boolean {
  const { before } = entry;
  return isRead(entry) && isJsonObject(before) && before["required"] === false && before["parts"] === true;
}

/** A drill tests an undo through its read-back, so both must be declared. */
function drillRules(entry: JsonObject, report: ReportProblem): void {
  if ((entry["drill"] ?? null) === null) return;
  const effect = entry["effect"];
  const why = typeof effect === "string" && Object.hasOwn(NO_UNDO, effect) ? NO_UNDO[effect] : undefined;
  if (why !== undefined) report(["drill"], `${why}, so a drill cannot test its undo; remove it`);
  else if ((entry["compensation"] ?? null) === null)
    report(["drill"], "tests an undo, but no compensation is declared; add one or remove this");
  else if ((entry["verification"] ?? null) === null)
    report(["drill"], "needs a verification: without a read-back a drill cannot confirm the undo");
}

function requiresRules(entry: JsonObject, report: ReportProblem): void {
  const requires = entry["requires"];
  if (!Array.isArray(requires)) return;
  const seen = new Set<JsonValue>();
  for (const [i, tool] of requires.entries()) {
    if (tool === entry["tool"]) report(["requires", i], "a tool that requires itself could never run");
    if (typeof tool === "string" && seen.has(tool)) report(["requires", i], "is listed twice");
    seen.add(tool);
  }
}

/** Reports misspelt known labels. Other labels are free, so a typo would otherwise be ignored silently. */
function riskRules(entry: JsonObject, report: ReportProblem): void {
  const risk = entry["risk"];
  if (!isJsonObject(risk)) return;
  const known = ["data_class", "blast_radius"];
  for (const name of Object.keys(risk)) {
    const hint = known.includes(name) ? "" : didYouMean(name, known);
    if (hint !== "") report(["risk", name], `unknown label${hint}`);
  }
}

function templateRules(
  value: JsonValue | undefined,
  path: (string | number)[],
  report: ReportProblem,
  roots: readonly PathRoot[],
): void {
  if (typeof value === "string") {
    const found = tryTemplatePath(value);
    if (found !== undefined && roots.includes(found.root)) return;
    if (found !== undefined) report(path, notThere(found.root, roots));
    else if (LOOKS_LIKE_PATH.test(value)) {
      report(path, 'is not a path; write $args.name, $result.name, $args["any name"] or $args.list[0]');
    } else if (HOLDS_PATH.test(value)) {
      report(path, "contains a path inside other text; only a string that consists of a path is replaced");
    }
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) templateRules(item, [...path, i], report, roots);
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) templateRules(value[name], [...path, name], report, roots);
  }
}

function notThere(root: PathRoot, roots: readonly PathRoot[] = CALL): string {
  if (roots.length === 1) return `is a path into $${root}, which does not exist before the call; use $args`;
  return "is a path into $before, but no before is declared; declare the tool that reads it";
}
