/**
 * Checks that a schema cannot express: unique and existing names, and fields that need each other. Reads the raw
 * document, so that these problems are reported together with those of the schema.
 */
import { tryDuration, tryTimestamp } from "../../kernel/duration.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { compileGlob } from "../../kernel/text/glob.ts";
import { TOOL_EFFECTS } from "../manifest/schema.ts";
import { didYouMean, MAX_PROBLEMS } from "../schema-problems.ts";
import type { ReportProblem } from "../yaml.ts";
import { CALL_COMPARISONS, earlierPath, isCallComparison } from "./checks/compared-calls.ts";
import { COMPARISON_OPS, type OpName } from "./ops/table.ts";
import { MAX_PATTERN_WEIGHT, patternWeight } from "./pattern.ts";

const NAMED_SECTIONS = ["rules", "flows", "limits", "budgets", "windows", "freezes"] as const;

export function lintPolicy(raw: JsonValue, report: ReportProblem): void {
  if (!isJsonObject(raw)) return;
  const ids = lintIds(raw, report);
  lintConditions(raw, report);
  lintTerms(raw, report);
  lintEffects(raw, report);
  lintTimes(raw, report);
  lintRisk(raw, report);
  lintTests(raw, ids, report);
  lintSandboxed(raw, report);
}

/** A sandbox replaces the approval of a person, and nothing else. */
function lintSandboxed(raw: JsonObject, report: ReportProblem): void {
  for (const { entry, path } of entries(raw, "rules"))
    if (field(entry, "sandboxed") !== undefined && field(entry, "action") !== "require_approval")
      report([...path, "sandboxed"], "needs action: require_approval, which is what it replaces");
}

/** Entries of a section that are mappings, with their paths. */
function entries(raw: JsonObject, section: string): { entry: JsonObject; path: (string | number)[] }[] {
  const list = Object.hasOwn(raw, section) ? raw[section] : undefined;
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry, i) => (isJsonObject(entry) ? [{ entry, path: [section, i] }] : []));
}

function field(entry: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(entry, name) ? entry[name] : undefined;
}

function lintIds(raw: JsonObject, report: ReportProblem): Set<string> {
  const all = new Set<string>();
  for (const section of NAMED_SECTIONS) {
    const seen = new Set<string>();
    for (const { entry, path } of entries(raw, section)) {
      const id = field(entry, "id");
      if (typeof id !== "string") continue;
      if (seen.has(id))
        report([...path, "id"], `another entry of ${section} has the id ${JSON.stringify(id)}; rename one`);
      seen.add(id);
      all.add(id);
    }
  }
  return all;
}

function lintConditions(raw: JsonObject, report: ReportProblem): void {
  let weight = 0;
  for (const { entry, path } of [
    ...entries(raw, "rules"),
    ...entries(raw, "claims"),
    ...entries(raw, "flows"),
  ]) {
    for (const { entry: condition, path: at } of entries(entry, "when")) {
      const op = field(condition, "op");
      if (typeof op !== "string" || !Object.hasOwn(COMPARISON_OPS, op)) continue;
      const value = field(condition, "value");
      if (path[0] === "flows" && earlierPath(value) !== undefined) {
        const problem = comparisonProblem(op, value);
        if (problem !== null) report([...path, ...at, "value"], problem);
        continue;
      }
      if (op.endsWith("matches") && typeof value === "string") {
        weight += patternWeight(value);
        if (weight > MAX_PATTERN_WEIGHT) {
          report(
            [...path, ...at, "value"],
            "the patterns of this policy are too large in total; use fewer or simpler ones",
          );
          return;
        }
      }
      const problem = COMPARISON_OPS[op as OpName].operandProblem(value);
      if (problem !== null) report([...path, ...at, "value"], `${problem} (op ${op})`);
    }
  }
}

function comparisonProblem(op: string, value: JsonValue | undefined): string | null {
  if (earlierPath(value) === null)
    return `${JSON.stringify(value)} is not a path into the first call; write $after.args.name or $after.result.name`;
  if (isCallComparison(op)) return null;
  return `op ${op} cannot compare two calls; use ${CALL_COMPARISONS.join(", ")}`;
}

/** Reports approval terms without an approval, and terms that can never apply. */
function lintTerms(raw: JsonObject, report: ReportProblem): void {
  const check = (terms: JsonValue | undefined, path: (string | number)[]) => {
    if (!isJsonObject(terms)) return;
    const after = field(terms, "escalate_after");
    if (field(terms, "escalate_to") !== undefined && after === undefined) {
      report([...path, "escalate_to"], "needs escalate_after, which sets the time");
    }
    const ttl = field(terms, "ttl");
    if (typeof after !== "string" || typeof ttl !== "string") return;
    const [after_ms, ttl_ms] = [tryDuration(after), tryDuration(ttl)];
    if (after_ms !== undefined && ttl_ms !== undefined && after_ms >= ttl_ms) {
      report([...path, "escalate_after"], "is not shorter than ttl, so the request would expire first");
    }
  };
  check(field(raw, "approvals"), ["approvals"]);
  for (const section of NAMED_SECTIONS) {
    for (const { entry, path } of entries(raw, section)) {
      const terms = field(entry, "approval");
      if (terms === undefined) continue;
      check(terms, [...path, "approval"]);
      if (field(entry, "action") !== "require_approval") {
        report(
          [...path, "approval"],
          "applies only with action require_approval; change the action or remove it",
        );
      }
    }
  }
}

/** Reports misspelt effects, which would match no call and disable their rule silently. */
function lintEffects(raw: JsonObject, report: ReportProblem): void {
  for (const section of [...NAMED_SECTIONS, "claims"]) {
    for (const { entry, path } of entries(raw, section)) {
      for (const name of ["match", "after", "then", "unless"]) {
        const match = field(entry, name);
        if (isJsonObject(match)) lintEffect(field(match, "effect"), [...path, name, "effect"], report);
      }
    }
  }
}

function lintEffect(effect: JsonValue | undefined, path: (string | number)[], report: ReportProblem): void {
  if (typeof effect !== "string") return;
  try {
    const glob = compileGlob(effect);
    if ([...TOOL_EFFECTS, "read_only"].some((name) => glob.test(name))) return;
  } catch {
    return;
  }
  report(path, `matches none of ${TOOL_EFFECTS.join(", ")}${didYouMean(effect, TOOL_EFFECTS)}`);
}

function lintTimes(raw: JsonObject, report: ReportProblem): void {
  for (const { entry, path } of entries(raw, "windows")) {
    if (field(entry, "days") === undefined && field(entry, "hours") === undefined) {
      report(path, "has neither days nor hours, so the action would never apply; add one");
    }
  }
  for (const { entry, path } of entries(raw, "freezes")) {
    const [from, to] = [field(entry, "from"), field(entry, "to")];
    const start = typeof from === "string" ? tryTimestamp(from) : undefined;
    const end = typeof to === "string" ? tryTimestamp(to) : undefined;
    if (start !== undefined && end !== undefined && end <= start)
      report([...path, "to"], "is not after from");
  }
}

function lintRisk(raw: JsonObject, report: ReportProblem): void {
  const risk = field(raw, "risk");
  if (!isJsonObject(risk)) return;
  const [approve, deny] = [field(risk, "require_approval_at"), field(risk, "deny_at")];
  if (typeof approve === "number" && typeof deny === "number" && deny <= approve) {
    report(["risk", "deny_at"], "is not above require_approval_at, so no call would ever require approval");
  }
}

function lintTests(raw: JsonObject, ids: ReadonlySet<string>, report: ReportProblem): void {
  const names = [...ids];
  let hinted = 0;
  for (const { entry, path } of entries(raw, "tests")) {
    const rule = field(entry, "rule");
    if (typeof rule !== "string" || ids.has(rule)) continue;
    const hint = hinted++ < MAX_PROBLEMS ? didYouMean(rule, names) : "";
    report([...path, "rule"], `no rule, flow, limit, budget, window or freeze has this id${hint}`);
  }
}
