/**
 * Reads a YAML file into strict JSON and holds it to a schema, naming the line and column of every
 * problem. Manifests, policies and configs all come through here, so that none of them meets YAML's
 * traps alone: duplicate keys, tags, alias bombs, several documents, nesting that exhausts the stack.
 */
import { Composer, type Document, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser } from "yaml";
import type { z } from "zod";
import { ProblemsError } from "../kernel/errors.ts";
import type { Json, JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { type FieldPath, MAX_PROBLEMS, type Problem, schemaProblems, showPath } from "./problems.ts";

const MAX_CHARS = 16 * 1_048_576;
/** Nodes that aliases may add in all: enough for reuse, too few for a bomb. */
const MAX_ALIASED = 10_000;
/**
 * The parser keeps at most a few frames a level. Past this the composer, which recurses, could exhaust
 * the stack, and V8 then may not throw but abort the process, so it is never given such a document.
 */
const MAX_PARSER_STACK = LIMITS.json_depth * 4;
const LONE_SURROGATE = /\p{Surrogate}/u;

export type Report = (path: FieldPath, message: string) => void;

export interface YamlSource {
  readonly file: string;
  readonly value: Json;
  /** `<file>:<line>:<col>: <field path>: <message>`, at the nearest node that exists. */
  place(problem: Problem): string;
  /** The same problems in the order in which the file has them, duplicates left out. */
  placeAll(problems: readonly Problem[]): string[];
}

/**
 * The document as T, or a ProblemsError with every problem. `lint` sees the raw value, which the schema
 * may have refused, and reports what a schema cannot say (names that must be unique, references).
 */
export function readYaml<T>(
  text: string,
  file: string,
  schema: z.ZodType<T>,
  lint?: (raw: Json, report: Report) => void,
): T {
  const source = parseYaml(text, file);
  const { data, problems } = schemaProblems(schema, source.value);
  lint?.(source.value, (path, message) => problems.push({ path, message }));
  if (problems.length > 0) throw new ProblemsError(source.placeAll(problems));
  return data as T;
}

/** The YAML text as strict JSON with positions; throws a ProblemsError where it is no such thing. */
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
  const offset = (problem: Problem) => offsetOf(doc, problem);
  const place = (problem: Problem) => at(offset(problem), `${showPath(problem.path)}: ${problem.message}`);
  const placeAll = (problems: readonly Problem[]) => {
    // Finding the place of one walks the document, and an author does not mend more at once.
    const first = problems.slice(0, MAX_PROBLEMS);
    const placed = first.map((problem, order) => ({ problem, order, from: offset(problem) }));
    placed.sort((a, b) => a.from - b.from || a.order - b.order);
    const told = [...new Set(placed.map(({ problem }) => place(problem)))];
    const left = problems.length - first.length;
    return left === 0 ? told : [...told, `${file}: and ${left} more problems`];
  };
  return { file, value, place, placeAll };
}

type At = (offset: number, message: string) => string;

function compose(text: string, lines: LineCounter, at: At): Document.Parsed {
  // Parser.parse would tell of the first line; its steps, driven one by one, do not.
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens = [];
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    offset += lexeme.length;
    if (parser.stack.length > MAX_PARSER_STACK) {
      const message = `(document): nesting is deeper than ${LIMITS.json_depth} levels`;
      throw new ProblemsError([at(Math.min(offset, text.length), message)]);
    }
  }
  for (const token of parser.end()) tokens.push(token);
  const options = {
    version: "1.2",
    schema: "core",
    prettyErrors: false,
    // The library compares every key with every other; the reader looks them up.
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
  private aliased = 0;
  /** As the walk has met them: an alias means the last anchor of its name before it. */
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

  read(node: unknown, path: FieldPath, depth: number, viaAlias = false): Json {
    if (node === null || node === undefined) return null;
    const from = startOf(node);
    const fail = (message: string): null => {
      this.tell(from, `${showPath(path)}: ${message}`);
      return null;
    };
    this.noteAnchor(node, viaAlias);
    if (depth > LIMITS.json_depth) return fail(`nesting is deeper than ${LIMITS.json_depth} levels`);
    if (viaAlias && ++this.aliased > MAX_ALIASED) {
      return this.aliased === MAX_ALIASED + 1 ? fail("aliases repeat too much; write the values out") : null;
    }
    if ((node as { tag?: string }).tag !== undefined)
      return fail("tags (!name) are not supported; remove the tag");
    if (isAlias(node)) {
      const target = this.anchors.get(node.source);
      if (target === undefined) return fail(`no anchor &${node.source} stands before this alias`);
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

  private readScalar(value: unknown, fail: (message: string) => null): Json {
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

/** Where the value at the path begins, or its nearest ancestor's when it is missing. */
function offsetOf(doc: Document.Parsed, problem: Problem): number {
  let node: unknown = doc.contents;
  let offset = startOf(node);
  for (let i = 0; i < problem.path.length; i++) {
    const key = problem.path[i]!;
    if (isAlias(node)) node = node.resolve(doc);
    if (isSeq(node) && typeof key === "number") node = node.items[key];
    else if (isMap(node)) {
      const pair = node.items.find((p) => isScalar(p.key) && p.key.value === key);
      if (pair === undefined) return offset;
      const last = i === problem.path.length - 1;
      // An empty value has no place of its own: its key is where a reader looks.
      if (last && (problem.key === true || pair.value === null)) return startOf(pair.key);
      node = pair.value;
    } else return offset;
    if (node === null || node === undefined) return offset;
    offset = startOf(node);
  }
  return offset;
}
