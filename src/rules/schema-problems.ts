/**
 * Turns zod issues into sentences for the author of a file: the field, the problem and the expected value, with a
 * suggestion for names that are nearly right.
 */
import type { z } from "zod";
import type { JsonValue } from "../kernel/json/json.ts";

export type FieldPath = readonly (string | number)[];

export interface FieldProblem {
  readonly path: FieldPath;
  readonly message: string;
  /** True if the problem is the key (an unknown one), not the value under it. */
  readonly key?: boolean;
}

const SHOWN_CHARS = 60;
const PLAIN = /^[A-Za-z_][\w-]*$/;

/** Text such as `rules[0].when[1].op`, or `(document)` for the root. */
export function showPath(path: FieldPath): string {
  let out = "";
  for (const key of path) {
    if (typeof key === "number") out += `[${key}]`;
    else if (PLAIN.test(key)) out += out === "" ? key : `.${key}`;
    else out += `[${shorten(JSON.stringify(key))}]`;
  }
  return out === "" ? "(document)" : out;
}

/** Shortens a value to one line for a message. */
export function showValue(value: JsonValue | undefined): string {
  if (value === undefined) return "nothing";
  return shorten(JSON.stringify(value));
}

function shorten(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS - 3)}...`;
}

/** Maximum reported problems. The last message counts the rest, without positions and suggestions. */
export const MAX_PROBLEMS = 200;
/** Maximum names that a misspelt word is compared with. */
const MAX_COMPARED_NAMES = 200;

/** Suggestion such as `; did you mean "gte"?`, or an empty text if no name is close. */
export function didYouMean(word: unknown, names: readonly unknown[]): string {
  const best = nearestName(word, names);
  return best === undefined ? "" : `; did you mean ${JSON.stringify(best)}?`;
}

/** Name that the author probably meant. */
export function nearestName(word: unknown, names: readonly unknown[]): string | undefined {
  if (typeof word !== "string" || word.length > 64) return undefined;
  let best: string | undefined;
  let least = word.length <= 3 ? 2 : 3;
  for (const name of names.slice(0, MAX_COMPARED_NAMES)) {
    if (typeof name !== "string" || Math.abs(name.length - word.length) >= least) continue;
    const distance = editDistance(word.toLowerCase(), name.toLowerCase());
    if (distance < least) [best, least] = [name, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** All problems that the schema finds in a value, one for each unknown key. */
export function schemaProblems<Data>(
  schema: z.ZodType<Data>,
  value: JsonValue,
): { data: Data | undefined; problems: FieldProblem[] } {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { data: parsed.data, problems: [] };
  const problems: FieldProblem[] = [];
  for (const issue of parsed.error.issues) {
    const path = issue.path.map((key) => (typeof key === "number" ? key : String(key)));
    if (issue.code === "unrecognized_keys") {
      const known = keysAt(schema, path);
      for (const key of issue.keys) {
        const near = problems.length < MAX_PROBLEMS ? didYouMean(key, known) : "";
        const hint = near || (known.length > 0 ? `; known keys are ${known.join(", ")}` : "");
        problems.push({ path: [...path, key], message: `unknown key${hint}`, key: true });
      }
    } else {
      problems.push({ path, message: explain(issue, valueAt(value, path)) });
    }
  }
  return { data: undefined, problems };
}

const ARTICLES: Record<string, string> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping (name: value)",
  record: "a mapping (name: value)",
};

function explain(issue: z.core.$ZodIssue, value: JsonValue | undefined): string {
  if (issue.code === "custom") return issue.message;
  if (value === undefined) return `is missing${wanted(issue)}`;
  switch (issue.code) {
    case "invalid_type":
      return `must be ${ARTICLES[issue.expected] ?? issue.expected}, not ${kindOf(value)}`;
    case "invalid_value": {
      const names = issue.values.map((v) => (typeof v === "string" ? v : JSON.stringify(v)));
      const list = names.length === 1 ? `must be ${names[0]}` : `must be one of ${names.join(", ")}`;
      return `${list}, not ${showValue(value)}${didYouMean(value, issue.values)}`;
    }
    case "too_small":
    case "too_big":
      return typeof value === "number"
        ? `${describeBounds(issue)}, not ${showValue(value)}`
        : describeBounds(issue);
    case "invalid_format":
      return `${showValue(value)} is malformed; ${issue.message}`;
    case "invalid_union":
      return `${showValue(value)} matches none of the allowed forms${unionForms(issue.errors)}`;
    case "invalid_key":
      return `the name ${showValue(value)} is not allowed here`;
    default:
      return issue.message;
  }
}

function wanted(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") {
    const names = issue.values.map((v) => (typeof v === "string" ? v : JSON.stringify(v)));
    return names.length === 1 ? `; write ${names[0]}` : `; write one of ${names.join(", ")}`;
  }
  if (issue.code === "invalid_type") return `; write ${ARTICLES[issue.expected] ?? issue.expected}`;
  return "";
}

function unionForms(errors: readonly (readonly z.core.$ZodIssue[])[]): string {
  const forms = errors.flatMap((list) =>
    list[0]?.code === "invalid_type" ? [ARTICLES[list[0].expected]] : [],
  );
  return forms.length > 0 ? `; write ${forms.join(" or ")}` : "";
}

/** Describes the allowed range of a value that is too small or too big. */
export function describeBounds(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  const { origin } = issue;
  const [limit, words] =
    issue.code === "too_small"
      ? [issue.minimum, issue.inclusive === false ? "more than" : "at least"]
      : [issue.maximum, issue.inclusive === false ? "less than" : "at most"];
  if ((origin === "string" || origin === "array") && limit === 1 && words === "at least")
    return "must not be empty";
  if (origin === "string") return `must have ${words} ${limit} characters`;
  if (origin === "array" || origin === "set") return `must have ${words} ${limit} entries`;
  return `must be ${words} ${limit}`;
}

function kindOf(value: JsonValue): string {
  if (value === null) return "empty (null)";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  if (typeof value === "string") return `the text ${showValue(value)}`;
  return showValue(value);
}

function valueAt(value: JsonValue, path: FieldPath): JsonValue | undefined {
  let here: JsonValue | undefined = value;
  for (const key of path) {
    if (here === null || typeof here !== "object") return undefined;
    here = Object.hasOwn(here, key) ? (here as Record<string | number, JsonValue>)[key] : undefined;
  }
  return here;
}

/** Keys of a strict object in the schema at the path, for suggestions. */
function keysAt(schema: z.ZodType, path: FieldPath): string[] {
  let here: unknown = schema;
  for (const key of path) {
    const def = unwrap(here);
    if (def?.shape !== undefined) here = def.shape[String(key)];
    else here = def?.element ?? def?.valueType;
  }
  return Object.keys(unwrap(here)?.shape ?? {});
}

interface Definition {
  shape?: Record<string, unknown>;
  element?: unknown;
  valueType?: unknown;
  innerType?: unknown;
  in?: unknown;
}

function unwrap(schema: unknown): Definition | undefined {
  let def = (schema as { def?: Definition } | undefined)?.def;
  while (def?.innerType !== undefined || def?.in !== undefined) {
    def = ((def.innerType ?? def.in) as { def?: Definition }).def;
  }
  return def;
}
