/**
 * Parses a key file entry by entry, so that a server can read 100,000 keys without delaying responses. Every entry goes
 * through the strict JSON parser.
 */
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../kernel/json/json.ts";
import { type KeyEntry, readEntry } from "./key-entry.ts";

const MAX_PROBLEMS = 100;
const SLICE_MS = 10;

export interface KeyList {
  readonly entries: KeyEntry[];
  /** The entries as written in the file, for writing them again. */
  readonly raw: JsonObject[];
}

/** Returns the entries of a key file. Throws a ProblemsError that lists the problems of each entry. */
export function parseKeys(text: string, file: string): KeyList {
  const work = readList(text, file);
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** Parses in slices, with other work between them. */
export async function parseKeysInSlices(text: string, file: string): Promise<KeyList> {
  const work = readList(text, file);
  let until = performance.now() + SLICE_MS;
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() < until) continue;
    await new Promise((resolve) => setImmediate(resolve));
    until = performance.now() + SLICE_MS;
  }
}

function* readList(text: string, file: string): Generator<undefined, KeyList> {
  const problems: string[] = [];
  const entries: KeyEntry[] = [];
  const raw: JsonObject[] = [];
  const hashes = new Map<string, number>();
  let index = -1;
  for (const item of items(text, file)) {
    yield;
    index++;
    const value = readItem(item, index, file);
    const { entry, problems: found } = readEntry(value);
    const tell = (problem: string) => problems.push(`${file}: entry ${index}${shownName(value)}: ${problem}`);
    for (const problem of found) tell(problem);
    if (entry === undefined) continue;
    const other = hashes.get(entry.key_sha256);
    if (other !== undefined) tell(`key_sha256: is the same as that of entry ${other}`);
    hashes.set(entry.key_sha256, index);
    entries.push(entry);
    raw.push(value as JsonObject);
  }
  if (problems.length > MAX_PROBLEMS) {
    problems.splice(
      MAX_PROBLEMS,
      problems.length,
      `${file}: and ${problems.length - MAX_PROBLEMS} more problems`,
    );
  }
  if (problems.length > 0) throw new ProblemsError(problems);
  return { entries, raw };
}

function readItem(text: string, index: number, file: string): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    throw new ProblemsError([`${file}: entry ${index}: ${messageOf(error)}`]);
  }
}

function shownName(value: JsonValue): string {
  const name = isJsonObject(value) ? value["name"] : undefined;
  return typeof name === "string" ? ` (${JSON.stringify(name.slice(0, 60))})` : "";
}

/** Yields the texts between the commas of the outermost list. The caller parses each as JSON. */
function* items(text: string, file: string): Generator<string> {
  const fail = (problem: string) => new ProblemsError([`${file}: ${problem}`]);
  const open = /^[ \t\r\n]*\[/.exec(text);
  if (open === null) throw fail("must be a JSON list of key entries");
  let from = open[0].length;
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === 0x22) at = endOfString(text, at);
    else if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x2c && depth === 0) {
      yield text.slice(from, at);
      from = at + 1;
    } else if (c === 0x7d && depth === 0) {
      throw fail("the list of key entries is closed by } instead of ]");
    } else if ((c === 0x7d || c === 0x5d) && depth-- === 0) {
      if (!/^[ \t\r\n]*$/.test(text.slice(at + 1))) throw fail("holds text after the list");
      const last = text.slice(from, at);
      if (from > open[0].length || last.trim() !== "") yield last;
      return;
    }
  }
  throw fail("the list of key entries is not closed; the file may be half written");
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === 0x5c) at++;
    else if (c === 0x22) return at;
  }
  return text.length;
}
