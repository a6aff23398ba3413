/**
 * What a schema cannot say about a policy: names that must be unique or must exist, fields that make
 * sense only together. It reads the raw document, so that these problems are told beside the schema's.
 */
import { tryDuration, tryTimestamp } from "../../kernel/duration.ts";
import { compileGlob } from "../../kernel/glob.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { EFFECTS } from "../manifest/types.ts";
import { didYouMean, MAX_PROBLEMS } from "../problems.ts";
import type { Report } from "../yaml.ts";
import { OPS, type OpName } from "./ops/table.ts";
import { MAX_PATTERN_WEIGHT, patternWeight } from "./pattern.ts";

const NAMED_SECTIONS = ["rules", "flows", "limits", "budgets", "windows", "freezes"] as const;

export function lintPolicy(raw: Json, report: Report): void {
  if (!isJsonObject(raw)) return;
  const ids = lintIds(raw, report);
  lintConditions(raw, report);
  lintTerms(raw, report);
  lintEffects(raw, report);
  lintTimes(raw, report);
  lintRisk(raw, report);
  lintTests(raw, ids, report);
}

/** The entries of a section that are mappings, with where they stand. */
function entries(raw: JsonObject, section: string): { entry: JsonObject; path: (string | number)[] }[] {
  const list = Object.hasOwn(raw, section) ? raw[section] : undefined;
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry, i) => (isJsonObject(entry) ? [{ entry, path: [section, i] }] : []));
}

function field(entry: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(entry, name) ? entry[name] : undefined;
}

function lintIds(raw: JsonObject, report: Report): Set<string> {
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

function lintConditions(raw: JsonObject, report: Report): void {
  let weight = 0;
  for (const { entry, path } of [...entries(raw, "rules"), ...entries(raw, "claims")]) {
    for (const { entry: condition, path: at } of entries(entry, "when")) {
      const op = field(condition, "op");
      if (typeof op !== "string" || !Object.hasOwn(OPS, op)) continue;
      const value = field(condition, "value");
      if (op.endsWith("matches") && typeof value === "string") {
        weight += patternWeight(value);
        if (weight > MAX_PATTERN_WEIGHT) {
          report(
            [...path, ...at, "value"],
            "the patterns of this policy are too much in all; use fewer or plainer ones",
          );
          return;
        }
      }
      const problem = OPS[op as OpName].operandProblem(value);
      if (problem !== null) report([...path, ...at, "value"], `${problem} (op ${op})`);
    }
  }
}

/** Approval terms where nothing asks for an approval, or that can never take effect. */
function lintTerms(raw: JsonObject, report: Report): void {
  const check = (terms: Json | undefined, path: (string | number)[]) => {
    if (!isJsonObject(terms)) return;
    const after = field(terms, "escalate_after");
    if (field(terms, "escalate_to") !== undefined && after === undefined) {
      report([...path, "escalate_to"], "needs escalate_after beside it, to say when");
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
          "has an effect only with action require_approval; change the action or remove it",
        );
      }
    }
  }
}

/** A misspelt effect would match no call at all, and its rule would sleep for ever. */
function lintEffects(raw: JsonObject, report: Report): void {
  for (const section of [...NAMED_SECTIONS, "claims"]) {
    for (const { entry, path } of entries(raw, section)) {
      for (const name of ["match", "after", "then", "unless"]) {
        const match = field(entry, name);
        if (isJsonObject(match)) lintEffect(field(match, "effect"), [...path, name, "effect"], report);
      }
    }
  }
}

function lintEffect(effect: Json | undefined, path: (string | number)[], report: Report): void {
  if (typeof effect !== "string") return;
  try {
    const glob = compileGlob(effect);
    if ([...EFFECTS, "read_only"].some((name) => glob.test(name))) return;
  } catch {
    return;
  }
  report(path, `matches none of ${EFFECTS.join(", ")}${didYouMean(effect, EFFECTS)}`);
}

function lintTimes(raw: JsonObject, report: Report): void {
  for (const { entry, path } of entries(raw, "windows")) {
    if (field(entry, "days") === undefined && field(entry, "hours") === undefined) {
      report(path, "says neither days nor hours, so the action would never apply; add one");
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

function lintRisk(raw: JsonObject, report: Report): void {
  const risk = field(raw, "risk");
  if (!isJsonObject(risk)) return;
  const [approve, deny] = [field(risk, "require_approval_at"), field(risk, "deny_at")];
  if (typeof approve === "number" && typeof deny === "number" && deny <= approve) {
    report(["risk", "deny_at"], "is not above require_approval_at, so nothing would ever go to a person");
  }
}

function lintTests(raw: JsonObject, ids: ReadonlySet<string>, report: Report): void {
  const names = [...ids];
  let told = 0;
  for (const { entry, path } of entries(raw, "tests")) {
    const rule = field(entry, "rule");
    if (typeof rule !== "string" || ids.has(rule)) continue;
    const hint = told++ < MAX_PROBLEMS ? didYouMean(rule, names) : "";
    report([...path, "rule"], `no rule, flow, limit, budget, window or freeze has this id${hint}`);
  }
}
