/** From a request to an operation's input; and what is wrong with it, in the request's own words. */
import type { z } from "zod";
import { describeIssues } from "../app/door/issues.ts";
import type { Complaint } from "../app/door/perform.ts";
import type { Field, Row } from "./row.ts";

export interface RawRequest {
  params: Readonly<Record<string, unknown>>;
  query: Readonly<Record<string, unknown>>;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: unknown;
}

type Input = Record<string, unknown>;

export function readRequest(row: Row, request: RawRequest): { input: Input; complaint: Complaint } {
  const sent = row.body ? bodyOf(request.body) : {};
  const input: Input = {};
  // Not a spread: members that are added to a spread object each cost it a new shape.
  for (const name in sent) input[name] = sent[name];
  for (const { header, field, read } of row.headers) {
    const value = request.headers[header.toLowerCase()];
    input[field] = read(Array.isArray(value) ? value[0] : value);
  }
  place(row.query, request.query, input);
  place(row.params, request.params, input);
  return { input, complaint: (error) => complain(row, request, sent, error) };
}

/** A body that is not an object has no fields; that is said when the rest is in order. */
function bodyOf(body: unknown): Input | undefined {
  if (body === undefined) return {};
  return typeof body === "object" && body !== null && !Array.isArray(body) ? (body as Input) : undefined;
}

/** A text that cannot be read stays as it came, and is refused as what it is not. */
function place(
  fields: Readonly<Record<string, Field>>,
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

/** No schema takes it. */
const UNREAD = Symbol("unread");

/** Path, then query, then body: whoever mends one finds the next. */
function complain(
  row: Row,
  { params, query }: RawRequest,
  sent: Input | undefined,
  error: z.ZodError | undefined,
): string | undefined {
  if (error === undefined && sent !== undefined && !isAny(sent, row.placed) && isEmpty(query))
    return undefined;
  const strange = Object.keys(query).filter((name) => row.query[name] === undefined);
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

const of = (fields: Readonly<Record<string, Field>>) => {
  const names = new Set(Object.values(fields).map(({ field }) => field));
  return (issue: Issue) => names.has(String(issue.path[0]));
};

function placedIssue(
  fields: Readonly<Record<string, Field>>,
  from: Readonly<Record<string, unknown>>,
  issue: Issue,
): string {
  const [name, { says }] = Object.entries(fields).find(([, { field }]) => field === issue.path[0])!;
  const value = from[name];
  if (value !== undefined && typeof value !== "string") return `${name}: must be a string`;
  if (says !== undefined) return `${name}: ${says}`;
  return describeIssues({ issues: [{ ...issue, path: [name, ...issue.path.slice(1)] }] }, "");
}
