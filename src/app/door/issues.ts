/** Turning a schema's complaints into one sentence each that names the field and never the value. */
import type { z } from "zod";

type Issue = z.core.$ZodIssue;

export function describeIssues(error: Pick<z.ZodError, "issues">, root: string): string {
  return error.issues.map((issue) => describeIssue(issue, root)).join("; ");
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
    case "invalid_format":
    case "custom":
      return `${at}: ${issue.message}`;
    default:
      return `${at}: is not valid`;
  }
}

function fieldName(path: readonly PropertyKey[]): string {
  return path
    .map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${String(key)}`))
    .join("");
}

function article(expected: string): string {
  const named = { int: "a whole number", record: "an object", nan: "a number" }[expected] ?? expected;
  if (named.includes(" ")) return named;
  return `${/^[aeiou]/.test(named) ? "an" : "a"} ${named}`;
}
