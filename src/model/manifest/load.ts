/**
 * Reads manifest files into a set. Every problem of every file is found in one go and names the file,
 * the line, the tool and the field; a set exists only when there is none.
 */
import { ProblemsError } from "../../kernel/errors.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import {
  type FieldPath,
  MAX_PROBLEMS,
  type Problem,
  schemaProblems,
  showPath,
  showValue,
} from "../problems.ts";
import { parseYaml, type YamlSource } from "../yaml.ts";
import { requiresInRing, setWarnings, writesAsReadBack } from "./cross-check.ts";
import type { CheckedEntry, ManifestFile } from "./entry.ts";
import { normalise } from "./normalise.ts";
import { entryRules } from "./rules.ts";
import { type ManifestEntry, manifestEntrySchema } from "./schema.ts";
import { manifestSet } from "./set.ts";
import type { Manifest, ManifestSet } from "./types.ts";

export interface LoadedManifests extends ManifestSet {
  /** What is legal and probably not meant, such as a prerequisite that no manifest declares. */
  readonly warnings: readonly string[];
  /** Where the manifest was read. */
  sourceOf(manifest: Manifest): { file: string; line: number } | undefined;
}

/** What files say, as plain data: it can be read in one thread and be used in another. */
export interface ManifestReading {
  readonly entries: readonly { manifest: Manifest; file: string; line: number }[];
  readonly warnings: readonly string[];
}

export function readManifests(files: readonly ManifestFile[]): LoadedManifests {
  return loadedManifests(manifestReading(files));
}

export function manifestReading(files: readonly ManifestFile[]): ManifestReading {
  const checked = checkManifests(files);
  const problems = problemsOf(checked);
  if (problems.length > 0) throw new ProblemsError(problems);
  return readingOf(checked);
}

/** What entries without a problem say. */
export function readingOf(checked: readonly CheckedEntry[]): ManifestReading {
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

/** The problems of one text, one a line; empty where it is valid. */
export function manifestProblems(text: string, file: string): string[] {
  return problemsOf(checkManifests([{ file, text }]));
}

/** One line for each invalid entry, with all of that entry's problems. */
export function errorsByEntry(entries: readonly CheckedEntry[]): string[] {
  return entries.flatMap((entry) => {
    const [first, ...rest] = entry.problems;
    if (first === undefined) return [];
    const more = rest.map(({ line, text }) => (line === first.line ? text : `line ${line}: ${text}`));
    return [`${startOf({ ...entry, line: first.line })}${[first.text, ...more].join("; ")}`];
  });
}

/** A single entry that did not come from a file (a registry draft given as an object). */
export function readManifestEntry(value: Json, what = "manifest"): Manifest {
  const problems = entryProblems(value);
  if (problems.length > 0) {
    throw new ProblemsError(problems.map(({ path, message }) => `${what}: ${fieldOf(path)}${message}`));
  }
  return normalise(value as ManifestEntry);
}

/** Every entry of every file with what is wrong with it; the files' own problems are entries without a label. */
export function checkManifests(files: readonly ManifestFile[]): CheckedEntry[] {
  const entries = files.flatMap(checkFile);
  repeatedEntries(entries);
  writesAsReadBack(entries);
  requiresInRing(entries);
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

function checkEntry(source: YamlSource, entry: Json, index: number): CheckedEntry {
  const line = lineOf(source, { path: [index], message: "" });
  const problems = entryProblems(entry);
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
    manifest: problems.length > 0 ? undefined : normalise(entry as ManifestEntry),
    problems: placed,
  };
}

function entryProblems(entry: Json): Problem[] {
  const { problems } = schemaProblems(manifestEntrySchema, entry);
  if (isJsonObject(entry)) entryRules(entry, (path, message) => problems.push({ path, message }));
  return problems;
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
      const text = `version: ${showValue(version)} of this tool is already declared at ${other.file}:${other.line}; give one of them another version`;
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

/** A name as it may stand in a line of text: a hostile one is quoted and cut. */
function shownName(name: string): string {
  return /^[\x21-\x7e]{1,80}$/.test(name) ? name : showValue(name);
}

/** `place` begins with `<file>:<line>:`; the column is left out, because an entry's fields stand one a line. */
function lineOf(source: YamlSource, problem: Problem): number {
  return Number.parseInt(source.place(problem).slice(source.file.length + 1), 10);
}

/** The reader's problem already names file, line and column; only what comes after the file is kept. */
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
