/**
 * Reads manifest files into a set. One run reports every problem of every file, with file, line, tool and field. A set
 * exists only if there are no problems.
 */
import { ProblemsError } from "../../kernel/errors.ts";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import {
  type FieldPath,
  type FieldProblem,
  MAX_PROBLEMS,
  schemaProblems,
  showPath,
  showValue,
} from "../schema-problems.ts";
import { parseYaml, type YamlSource } from "../yaml.ts";
import {
  reportHttpProblems,
  reportRequirementCycles,
  reportWritingReadBacks,
  setWarnings,
} from "./cross-check.ts";
import type { CheckedEntry, ManifestFile } from "./entry.ts";
import { entryRules } from "./rules.ts";
import { manifestEntrySchema } from "./schema.ts";
import { manifestSet } from "./set.ts";
import type { ManifestSet, ToolManifest } from "./types.ts";

export interface LoadedManifests extends ManifestSet {
  /** Valid but probably unintended, such as a prerequisite that no manifest declares. */
  readonly warnings: readonly string[];
  /** File and line of a manifest. */
  sourceOf(manifest: ToolManifest): { file: string; line: number } | undefined;
}

/** Content of manifest files as plain data, so that a worker thread can read them. */
export interface ManifestReading {
  readonly entries: readonly { manifest: ToolManifest; file: string; line: number }[];
  readonly warnings: readonly string[];
}

export function readManifests(files: readonly ManifestFile[]): LoadedManifests {
  return loadedManifests(manifestReading(files));
}

export function manifestReading(files: readonly ManifestFile[]): ManifestReading {
  const checked = checkManifests(files);
  const problems = problemsOf(checked);
  if (problems.length > 0) throw new ProblemsError(problems);
  return toManifestReading(checked);
}

/** Collects the entries without problems. */
export function toManifestReading(checked: readonly CheckedEntry[]): ManifestReading {
  const places = new Map(
    checked.flatMap((entry) => (entry.manifest ? [[entry.manifest, entry] as const] : [])),
  );
  const entries = [...places].map(([manifest, { file, line }]) => ({ manifest, file, line }));
  const set = manifestSet([...places.keys()]);
  return { entries, warnings: setWarnings(set, (manifest) => startOf(places.get(manifest)!)) };
}

export function loadedManifests({ entries, warnings }: ManifestReading): LoadedManifests {
  const places = new Map(entries.map(({ manifest, file, line }) => [manifest, { file, line }]));
  const set = manifestSet([...places.keys()]);
  return { ...set, warnings, sourceOf: (manifest) => places.get(manifest) };
}

/** Problems of one text, one per line; empty if the text is valid. */
export function manifestProblems(text: string, file: string): string[] {
  return problemsOf(checkManifests([{ file, text }]));
}

/** One line for each invalid entry, with all its problems. */
export function errorsByEntry(entries: readonly CheckedEntry[]): string[] {
  return entries.flatMap((entry) => {
    const [first, ...rest] = entry.problems;
    if (first === undefined) return [];
    const more = rest.map(({ line, text }) => (line === first.line ? text : `line ${line}: ${text}`));
    return [`${startOf({ ...entry, line: first.line })}${[first.text, ...more].join("; ")}`];
  });
}

/** Reads a single entry that did not come from a file, such as a registry draft. */
export function readManifestEntry(value: JsonValue, what = "manifest"): ToolManifest {
  const { manifest, problems } = checkedManifest(value);
  if (manifest === undefined) {
    throw new ProblemsError(problems.map(({ path, message }) => `${what}: ${fieldOf(path)}${message}`));
  }
  return manifest;
}

/** Checks every entry of every file. Problems of a file as such are entries without a label. */
export function checkManifests(files: readonly ManifestFile[]): CheckedEntry[] {
  const entries = files.flatMap(checkFile);
  repeatedEntries(entries);
  reportWritingReadBacks(entries);
  reportRequirementCycles(entries);
  reportHttpProblems(entries);
  return entries;
}

function checkFile({ file, text }: ManifestFile): CheckedEntry[] {
  let source: YamlSource;
  try {
    source = parseYaml(text, file);
  } catch (error) {
    if (!(error instanceof ProblemsError)) throw error;
    return error.problems.map((problem) => brokenFile(file, problem));
  }
  const { value } = source;
  if (!Array.isArray(value)) {
    const text = 'must be a list of entries; begin each with "- tool:"';
    return [brokenEntry(file, 1, text)];
  }
  return value.map((entry, index) => checkEntry(source, entry, index));
}

function checkEntry(source: YamlSource, entry: JsonValue, index: number): CheckedEntry {
  const line = lineOf(source, { path: [index], message: "" });
  const { manifest, problems } = checkedManifest(entry);
  const placed = problems.slice(0, MAX_PROBLEMS).map((problem) => ({
    line: lineOf(source, { ...problem, path: [index, ...problem.path] }),
    text: `${fieldOf(problem.path)}${problem.message}`,
  }));
  placed.sort((a, b) => a.line - b.line);
  const name = isJsonObject(entry) ? entry["tool"] : undefined;
  return {
    file: source.file,
    line,
    requires_line: lineOf(source, { path: [index, "requires"], message: "" }),
    before_line: lineOf(source, { path: [index, "before", "tool"], message: "" }),
    label: typeof name === "string" && name !== "" ? `tool ${shownName(name)}` : `entry ${index + 1}`,
    manifest,
    problems: placed,
  };
}

/** The normalised manifest of an entry, or its problems. */
function checkedManifest(entry: JsonValue): { manifest: ToolManifest | undefined; problems: FieldProblem[] } {
  const { data, problems } = schemaProblems(manifestEntrySchema, entry);
  if (isJsonObject(entry)) entryRules(entry, (path, message) => problems.push({ path, message }));
  return { manifest: problems.length > 0 ? undefined : data, problems };
}

function repeatedEntries(entries: readonly CheckedEntry[]): void {
  const first = new Map<string, CheckedEntry>();
  for (const entry of entries) {
    if (entry.manifest === undefined) continue;
    const { tool, version } = entry.manifest;
    const key = JSON.stringify([tool, version]);
    const other = first.get(key);
    if (other === undefined) first.set(key, entry);
    else {
      const text = `version: ${showValue(version)} of this tool is already declared at ${other.file}:${other.line}; change the version of one of them`;
      entry.problems.push({ line: entry.line, text });
    }
  }
}

function problemsOf(entries: readonly CheckedEntry[]): string[] {
  return entries.flatMap((entry) =>
    entry.problems.map(({ line, text }) => `${startOf({ ...entry, line })}${text}`),
  );
}

function startOf({ file, line, label }: Pick<CheckedEntry, "file" | "line" | "label">): string {
  return label === null ? `${file}:${line}: ` : `${file}:${line}: ${label}: `;
}

function fieldOf(path: FieldPath): string {
  return path.length === 0 ? "" : `${showPath(path)}: `;
}

/** Quotes and truncates a hostile name, so that it fits in a line of text. */
function shownName(name: string): string {
  return /^[\x21-\x7e]{1,80}$/.test(name) ? name : showValue(name);
}

/** `place` begins with `<file>:<line>:`. The column is left out, because each field of an entry has its own line. */
function lineOf(source: YamlSource, problem: FieldProblem): number {
  return Number.parseInt(source.place(problem).slice(source.file.length + 1), 10);
}

/** Entry for an unreadable file. The reader's problem already names file, line and column, so only the rest is used. */
function brokenFile(file: string, problem: string): CheckedEntry {
  const rest = problem.startsWith(`${file}:`) ? problem.slice(file.length + 1) : problem;
  const match = /^(\d+):(?:\d+): (?:\(document\): )?([\s\S]*)$/.exec(rest);
  const line = match === null ? 1 : Number(match[1]);
  return brokenEntry(file, line, match?.[2] ?? rest);
}

function brokenEntry(file: string, line: number, text: string): CheckedEntry {
  const problems = [{ line, text }];
  return { file, line, requires_line: line, before_line: line, label: null, manifest: undefined, problems };
}
