/**
 * Writes into drafted manifests what a trial showed. An undo that held loses the marks of a guess; one that did
 * nothing is taken out. Keeps the author's comments, and leaves `lifecycle: draft`, because a person approves.
 */
import { isMap, isScalar, isSeq, parseDocument, type YAMLMap } from "yaml";
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";

/** What to write for one tool. */
export interface DraftVerdict {
  tool: string;
  /** `held` keeps the undo, `disproved` takes it out, `unsure` keeps it as a guess. */
  found: "held" | "disproved" | "unsure";
  /** Sentence for the comment. */
  note: string;
  /** Sections added to an undo that held, so that `svc drill` can repeat the trial. */
  adds?: { verification?: JsonValue; drill?: { args: JsonObject } } | undefined;
}

/** Returns the text with the verdicts of its tools, or null if it has none of them. */
export function withVerdicts(text: string, verdicts: readonly DraftVerdict[]): string | null {
  const document = parseDocument(text);
  const items: readonly unknown[] = isSeq(document.contents) ? document.contents.items : [];
  const entries = items.filter((item): item is YAMLMap => isMap(item));
  let changed = false;
  for (const verdict of verdicts) {
    const entry = entries.find((one) => one.get("tool") === verdict.tool && one.get("lifecycle") === "draft");
    if (entry === undefined) continue;
    changed = true;
    if (verdict.found === "held") keepUndo(entry, verdict, (value) => document.createNode(value));
    else if (verdict.found === "unsure")
      comment(scalarAt(entry, ["compensation", "tool"]), ` guess, ${verdict.note}`);
    else takeOut(entry, verdict.note);
  }
  return changed ? document.toString({ lineWidth: 0, flowCollectionPadding: false }) : null;
}

function keepUndo(
  entry: YAMLMap,
  { note, adds = {} }: DraftVerdict,
  node: (value: JsonValue) => unknown,
): void {
  for (const path of [["effect"], ["compensation", "args"], ["before", "args"]]) {
    const found = entry.getIn(path, true);
    if (isScalar(found)) comment(found, undefined);
    else if (isMap(found))
      for (const { value } of found.items) if (isScalar(value)) comment(value, undefined);
  }
  comment(scalarAt(entry, ["compensation", "tool"]), ` ${note}`);
  for (const [name, section] of Object.entries(adds)) entry.set(name, node(section as JsonValue));
}

function takeOut(entry: YAMLMap, note: string): void {
  for (const name of ["compensation", "before", "verification", "drill"]) entry.delete(name);
  entry.set("effect", "irreversible");
  const effect = entry.get("effect", true);
  if (isScalar(effect)) comment(effect, ` ${note}`);
}

function scalarAt(entry: YAMLMap, path: readonly string[]): { comment?: string | null } | undefined {
  const found = entry.getIn(path, true);
  return isScalar(found) ? found : undefined;
}

function comment(node: { comment?: string | null } | undefined, text: string | undefined): void {
  if (node !== undefined) node.comment = text === undefined ? null : oneLine(text);
}

/** Keeps text from an upstream inside its comment. */
const oneLine = (text: string): string =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").slice(0, 300);
