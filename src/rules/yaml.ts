/**
 * Reads YAML into strict JSON, validates it with a schema and reports the line and column of every problem. Manifests,
 * policies and configs all use it, so that YAML's traps are handled once: duplicate keys, tags, alias bombs, several
 * documents, nesting that exhausts the stack.
 */
import { Composer, type Document, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser } from "yaml";
import type { z } from "zod";
import { ProblemsError } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import {
  type FieldPath,
  type FieldProblem,
  MAX_PROBLEMS,
  schemaProblems,
  showPath,
} from "./schema-problems.ts";

const MAX_CHARS = 16 * 1_048_576;
/** Maximum nodes that aliases can add: enough for reuse, too few for a bomb. */
const MAX_ALIASED = 10_000;
/**
 * The parser uses a few frames per level. Beyond this limit, the recursive composer could exhaust the stack, and V8 may
 * then abort the process instead of throwing. Such a document never reaches the composer.
 */
const MAX_PARSER_STACK = SERVICE_LIMITS.json_depth * 4;
const LONE_SURROGATE = /\p{Surrogate}/u;

export type ReportProblem = (path: FieldPath, message: string) => void;

export interface YamlSource {
  readonly file: string;
  readonly value: JsonValue;
  /** `<file>:<line>:<col>: <field path>: <message>`, at the nearest existing node. */
  place(problem: FieldProblem): string;
  /** Places all problems, in file order and without duplicates. */
  placeAll(problems: readonly FieldProblem[]): string[];
}

/**
 * Returns the document as T, or throws a ProblemsError with every problem. `lint` receives the raw value, even if it
 * violates the schema, and reports problems that a schema cannot express, such as duplicate names and broken
 * references.
 */
export function readYaml<T>(
  text: string,
  file: string,
  schema: z.ZodType<T>,
  lint?: (raw: JsonValue, report: ReportProblem) => void,
): T {
  const source = parseYaml(text, file);
  const { data, problems } = schemaProblems(schema, source.value);
  lint?.(source.value, (path, message) => problems.push({ path, message }));
  if (problems.length > 0) throw new ProblemsError(source.placeAll(problems));
  return data as T;
}

/** Parses YAML text to strict JSON with positions. Throws a ProblemsError for anything else. */
export function parseYaml(text: string, file: string): YamlSource {
  const lines = new LineCounter();
  const at = (offset: number, message: string) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}: ${message}`;
  };
  if (text.length > MAX_CHARS) {
    throw new ProblemsError([`${file}:1:1: (document): longer than ${MAX_CHARS} characters; split it`]);
  }
  const doc = compose(text, lines, at);
  const broken = doc.errors
    .slice(0, MAX_PROBLEMS)
    .map((error) => at(error.pos[0], `(document): ${syntaxMessage(error)}`));
  if (doc.directives?.yaml.version === "1.1")
    broken.push(at(0, "(document): is YAML 1.1; remove the %YAML line"));
  if (broken.length > 0) throw new ProblemsError(broken.slice(0, MAX_PROBLEMS));
  const reader = new NodeReader(at);
  const value = reader.read(doc.contents, [], 0);
  if (reader.problems.length > 0) throw new ProblemsError(reader.problems);
  if (doc.contents === null || value === null)
    throw new ProblemsError([at(0, "(document): the document is empty")]);
  const offset = (problem: FieldProblem) => offsetOf(doc.contents, reader.targets, problem);
  const place = (problem: FieldProblem) =>
    at(offset(problem), `${showPath(problem.path)}: ${problem.message}`);
  const placeAll = (problems: readonly FieldProblem[]) => {
    // Finding a position walks the document, and an author does not fix more problems at once.
    const first = problems.slice(0, MAX_PROBLEMS);
    const placed = first.map((problem, order) => ({ problem, order, from: offset(problem) }));
    placed.sort((a, b) => a.from - b.from || a.order - b.order);
    const messages = [...new Set(placed.map(({ problem }) => place(problem)))];
    const left = problems.length - first.length;
    return left === 0 ? messages : [...messages, `${file}: and ${left} more problems`];
  };
  return { file, value, place, placeAll };
}

type At = (offset: number, message: string) => string;

function compose(text: string, lines: LineCounter, at: At): Document.Parsed {
  // Parser.parse registers the first line; the separate steps used here do not.
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens = [];
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    offset += lexeme.length;
    if (parser.stack.length > MAX_PARSER_STACK) {
      const message = `(document): nesting is deeper than ${SERVICE_LIMITS.json_depth} levels`;
      throw new ProblemsError([at(Math.min(offset, text.length), message)]);
    }
  }
  for (const token of parser.end()) tokens.push(token);
  const options = {
    version: "1.2",
    schema: "core",
    prettyErrors: false,
    // The library compares every pair of keys; the reader below uses a lookup.
    uniqueKeys: false,
    lineCounter: lines,
  } as const;
  const docs = [...new Composer(options).compose(tokens, true, text.length)];
  if (docs.length > 1) {
    const second = docs[1]!.range[0];
    throw new ProblemsError([at(second, "(document): more than one document; keep one, without a --- line")]);
  }
  return docs[0] as Document.Parsed;
}

function syntaxMessage(error: { code: string; message: string }): string {
  if (error.code === "TAB_AS_INDENT") return "a tab is used to indent; use spaces";
  return `not well-formed YAML: ${error.message.split("\n")[0]}`;
}

class NodeReader {
  readonly problems: string[] = [];
  /** The node that each alias refers to. */
  readonly targets = new Map<unknown, unknown>();
  private aliased = 0;
  /** In document order: an alias refers to the last anchor of its name before it. */
  private readonly anchors = new Map<string, unknown>();
  private readonly at: At;

  constructor(at: At) {
    this.at = at;
  }

  private tell(offset: number, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(this.at(offset, message));
  }

  private noteAnchor(node: unknown, viaAlias: boolean): void {
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined && !viaAlias) this.anchors.set(anchor, node);
  }

  read(node: unknown, path: FieldPath, depth: number, viaAlias = false): JsonValue {
    if (node === null || node === undefined) return null;
    const from = startOf(node);
    const fail = (message: string): null => {
      this.tell(from, `${showPath(path)}: ${message}`);
      return null;
    };
    this.noteAnchor(node, viaAlias);
    if (depth > SERVICE_LIMITS.json_depth)
      return fail(`nesting is deeper than ${SERVICE_LIMITS.json_depth} levels`);
    if (viaAlias && ++this.aliased > MAX_ALIASED) {
      return this.aliased === MAX_ALIASED + 1 ? fail("aliases repeat too much; write the values out") : null;
    }
    if ((node as { tag?: string }).tag !== undefined)
      return fail("tags (!name) are not supported; remove the tag");
    if (isAlias(node)) {
      const target = this.anchors.get(node.source);
      if (target === undefined) return fail(`no anchor &${node.source} precedes this alias`);
      this.targets.set(node, target);
      return this.read(target, path, depth + 1, true);
    }
    if (isSeq(node)) return node.items.map((item, i) => this.read(item, [...path, i], depth + 1, viaAlias));
    if (isMap(node)) return this.readMap(node.items, path, depth, viaAlias);
    if (!isScalar(node)) return fail("not a value that JSON can hold");
    return this.readScalar(node.value, fail);
  }

  private readMap(
    items: readonly { key: unknown; value: unknown }[],
    path: FieldPath,
    depth: number,
    viaAlias: boolean,
  ): JsonObject {
    const out: JsonObject = {};
    for (const pair of items) {
      const key = isScalar(pair.key) ? pair.key.value : undefined;
      if (isScalar(pair.key)) this.noteAnchor(pair.key, viaAlias);
      const tell = (message: string) => this.tell(startOf(pair.key), `${showPath(path)}: ${message}`);
      if (typeof key === "number" || typeof key === "boolean")
        tell(`the key ${key} must be text; put it in quotes`);
      else if (typeof key !== "string") tell("a key must be text");
      else if (key === "__proto__") tell('the key "__proto__" is not allowed');
      else if (Object.hasOwn(out, key))
        this.tell(startOf(pair.key), "(document): duplicate key; remove or rename one of the two");
      else out[key] = this.read(pair.value, [...path, key], depth + 1, viaAlias);
    }
    return out;
  }

  private readScalar(value: unknown, fail: (message: string) => null): JsonValue {
    if (value === null || typeof value === "boolean") return value;
    if (typeof value === "string")
      return LONE_SURROGATE.test(value) ? fail("holds half of a surrogate pair") : value;
    if (typeof value !== "number") return fail("not a value that JSON can hold");
    if (!Number.isFinite(value)) return fail("is not a number that JSON can hold");
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      return fail("an integer beyond 2^53 cannot be kept exactly; put it in quotes");
    }
    return value === 0 ? 0 : value;
  }
}

function startOf(node: unknown): number {
  return (node as { range?: [number, number, number] | null } | null)?.range?.[0] ?? 0;
}

/** Offset of the value at the path, or of its nearest ancestor if the value is missing. */
function offsetOf(contents: unknown, targets: ReadonlyMap<unknown, unknown>, problem: FieldProblem): number {
  let node = contents;
  let offset = startOf(node);
  for (let i = 0; i < problem.path.length; i++) {
    const key = problem.path[i]!;
    if (isAlias(node)) node = targets.get(node);
    if (isSeq(node) && typeof key === "number") node = node.items[key];
    else if (isMap(node)) {
      const pair = node.items.find((p) => isScalar(p.key) && p.key.value === key);
      if (pair === undefined) return offset;
      const last = i === problem.path.length - 1;
      // An empty value has no position, so its key is used.
      if (last && (problem.key === true || pair.value === null)) return startOf(pair.key);
      node = pair.value;
    } else return offset;
    if (node === null || node === undefined) return offset;
    offset = startOf(node);
  }
  return offset;
}
