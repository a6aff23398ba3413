/** Turns an HTTP request into an operation's input, and words its problems by the request's own field names. */
import type { z } from "zod";
import type { DescribeInputErrors } from "../../operations/pipeline/dispatch.ts";
import { describeIssues } from "../../operations/pipeline/validation-messages.ts";
import type { FieldBinding, HttpRow } from "./http-row.ts";

export interface RawRequest {
  params: Readonly<Record<string, unknown>>;
  query: Readonly<Record<string, unknown>>;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: unknown;
}

type Input = Record<string, unknown>;

export function readRequest(
  row: HttpRow,
  request: RawRequest,
): { input: Input; complaint: DescribeInputErrors } {
  const sent = row.body ? bodyOf(request.body) : {};
  const input: Input = {};
  // Not a spread: adding members to a spread object creates a new hidden class for each of them.
  for (const name in sent) input[name] = sent[name];
  for (const { header, field, read } of row.headers) {
    const value = request.headers[header.toLowerCase()];
    input[field] = read(Array.isArray(value) ? value[0] : value);
  }
  place(row.query, request.query, input);
  place(row.params, request.params, input);
  return { input, complaint: (error) => complain(row, request, sent, error) };
}

/** Undefined for a body that is not an object. `complain` reports that after problems of path and query. */
function bodyOf(body: unknown): Input | undefined {
  if (body === undefined) return {};
  return typeof body === "object" && body !== null && !Array.isArray(body) ? (body as Input) : undefined;
}

/** Copies text fields into the input. Unreadable text becomes `UNREAD`, so the schema rejects it. */
function place(
  fields: Readonly<Record<string, FieldBinding>>,
  from: Readonly<Record<string, unknown>>,
  input: Input,
) {
  for (const name in fields) {
    const value = from[name];
    if (value === undefined) continue;
    const { field, read } = fields[name]!;
    input[field] = typeof value === "string" ? (read(value) ?? UNREAD) : UNREAD;
  }
}

/** A value that every schema rejects. */
const UNREAD = Symbol("unread");

/** Describes the problems of the path, else of the query, else of the body. */
function complain(
  row: HttpRow,
  { params, query }: RawRequest,
  sent: Input | undefined,
  error: z.ZodError | undefined,
): string | undefined {
  if (error === undefined && sent !== undefined && !isAny(sent, row.placed) && isEmpty(query))
    return undefined;
  const strange = Object.keys(query).filter((name) => !Object.hasOwn(row.query, name));
  const misplaced = sent === undefined ? [] : Object.keys(sent).filter((name) => row.placed.has(name));
  if (error === undefined && strange.length === 0 && misplaced.length === 0 && sent !== undefined)
    return undefined;
  const issues = error?.issues ?? [];
  const unknown = (names: readonly string[]) => names.map((name) => `unknown field ${name}`);
  const inPath = issues.filter(of(row.params)).map((issue) => placedIssue(row.params, params, issue));
  if (inPath.length > 0) return inPath.join("; ");
  const inQuery = issues.filter(of(row.query)).map((issue) => placedIssue(row.query, query, issue));
  if (inQuery.length + strange.length > 0) return [...inQuery, ...unknown(strange)].join("; ");
  if (sent === undefined) return "body: must be an object";
  return [...unknown(misplaced), ...(error === undefined ? [] : [describeIssues(error, "body")])].join("; ");
}

function isAny(sent: Input, names: ReadonlySet<string>): boolean {
  for (const name in sent) if (names.has(name)) return true;
  return false;
}

function isEmpty(query: RawRequest["query"]): boolean {
  for (const _ in query) return false;
  return true;
}

type Issue = z.core.$ZodIssue;

const of = (fields: Readonly<Record<string, FieldBinding>>) => {
  const names = new Set(Object.values(fields).map(({ field }) => field));
  return (issue: Issue) => names.has(String(issue.path[0]));
};

function placedIssue(
  fields: Readonly<Record<string, FieldBinding>>,
  from: Readonly<Record<string, unknown>>,
  issue: Issue,
): string {
  const [name, { says }] = Object.entries(fields).find(([, { field }]) => field === issue.path[0])!;
  const value = from[name];
  if (value !== undefined && typeof value !== "string") return `${name}: must be a string`;
  if (says !== undefined) return `${name}: ${says}`;
  return describeIssues({ issues: [{ ...issue, path: [name, ...issue.path.slice(1)] }] }, "");
}
