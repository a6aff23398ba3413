/** Turns schema errors into one sentence each that names the field and never the value. */
import type { z } from "zod";
import { describeBounds } from "../../rules/schema-problems.ts";

type Issue = z.core.$ZodIssue;

/** Maximum problems that a message lists. It lists those of outer fields first, and counts the others. */
const MAX_ISSUES = 50;

export function describeIssues({ issues }: Pick<z.ZodError, "issues">, root: string): string {
  if (issues.length <= MAX_ISSUES) return issues.map((issue) => describeIssue(issue, root)).join("; ");
  const named = [...issues].sort((a, b) => a.path.length - b.path.length).slice(0, MAX_ISSUES);
  const texts = named.map((issue) => describeIssue(issue, root));
  return [...texts, `and ${issues.length - MAX_ISSUES} more`].join("; ");
}

function describeIssue(issue: Issue, root: string): string {
  const at = fieldName(issue.path) || root || "request";
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => `unknown field ${fieldName([...issue.path, key])}`).join("; ");
    case "invalid_type":
      return issue.input === undefined && issue.message.includes("undefined")
        ? `${at}: is required`
        : `${at}: must be ${article(issue.expected)}`;
    case "invalid_value":
      return `${at}: must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "too_big":
    case "too_small":
      return `${at}: ${isStock(issue) ? describeBounds(issue) : issue.message}`;
    case "invalid_format":
      return `${at}: ${isStock(issue) ? formatWords(issue.message) : issue.message}`;
    case "custom":
      return `${at}: ${issue.message}`;
    case "invalid_union":
      return describeUnion(issue, root, at);
    default:
      return `${at}: is not valid`;
  }
}

/** Default messages of the schema library, which are written for programmers. */
const isStock = ({ message }: Issue) => /^(?:Too (?:big|small): expected|Invalid) /.test(message);

const formatWords = (message: string) =>
  message.replace(/^Invalid string: /, "").replace(/^Invalid /, "must be a valid ");

/** Describes the error of the intended variant if it can be recognized; otherwise lists the variants. */
function describeUnion(issue: Extract<Issue, { code: "invalid_union" }>, root: string, at: string): string {
  const isOther = (issues: readonly Issue[]) =>
    issues.some(
      ({ code, path }) => path.length === 0 && (code === "invalid_type" || code === "invalid_value"),
    );
  const meant = issue.errors.filter((issues) => !isOther(issues)).sort((a, b) => a.length - b.length)[0];
  if (meant !== undefined) {
    const issues = meant.map((one) => ({ ...one, path: [...issue.path, ...one.path] }));
    return describeIssues({ issues }, root);
  }
  const wanted = issue.errors.flatMap((issues) => {
    const [first] = issues.filter(({ path }) => path.length === 0);
    if (first?.code === "invalid_type") return article(first.expected);
    return first?.code === "invalid_value" ? first.values.map((value) => JSON.stringify(value)) : [];
  });
  return wanted.length === 0 ? `${at}: is not valid` : `${at}: must be ${[...new Set(wanted)].join(" or ")}`;
}

function fieldName(path: readonly PropertyKey[]): string {
  return path
    .map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${String(key)}`))
    .join("");
}

function article(expected: string): string {
  const named = { int: "a whole number", record: "an object", nan: "a number" }[expected] ?? expected;
  if (named.includes(" ") || named === "null") return named;
  return `${/^[aeiou]/.test(named) ? "an" : "a"} ${named}`;
}
