/**
 * Reads a server's answer to an operation. A mistyped URL may lead to a proxy or another program, so an answer is
 * accepted only in the operation's shape.
 */
import type { z } from "zod";
import type { EgressResponse } from "../../egress/egress.ts";
import { SvcError } from "../../kernel/errors.ts";
import { parseJsonBytes } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { DocumentContent, JsonText, type ServiceOperation } from "../../operations/pipeline/operation.ts";
import { PROBLEM_HEADER } from "./http-row.ts";

/** Size limit of an answer. Documents, such as a ledger export, may be longer than lists and single objects. */
export function answerSizeLimit({ output }: ServiceOperation): number {
  return "content_types" in output ? SERVICE_LIMITS.document_bytes : SERVICE_LIMITS.answer_bytes;
}

export function readAnswer({ output }: ServiceOperation, base: string, response: EgressResponse): unknown {
  const { status, headers, body } = response;
  if (status < 200 || status >= 300) throw redirected(base, status, headers["location"]);
  if ("content_types" in output) return readContent(output.content_types, base, response);
  let value: unknown;
  try {
    value = parseJsonBytes(body);
  } catch {
    throw stranger(base, "the answer is not JSON");
  }
  assertShape("text_of" in output ? output.text_of : output, base, value);
  return "text_of" in output ? new JsonText(Buffer.from(body).toString("utf8")) : value;
}

/** Throws unless the server's value has the shape of the operation's answer. */
export function assertShape(shape: z.ZodType, base: string, value: unknown): void {
  const wrong = shapeProblem(shape, value);
  if (wrong !== null) throw stranger(base, wrong);
}

function readContent(
  types: readonly string[],
  base: string,
  { headers, body }: EgressResponse,
): DocumentContent {
  const type = headers["content-type"] ?? "application/octet-stream";
  const media = type.split(";", 1)[0]!.trim().toLowerCase();
  if (!types.includes(media) || !isWhole(media, body))
    throw stranger(base, `the answer is not ${types.join(" or ")}`);
  const name = /filename="([^"]*)"/.exec(headers["content-disposition"] ?? "")?.[1];
  return new DocumentContent(type, body, name, problemIn(headers[PROBLEM_HEADER]));
}

/** Whether a JSON document begins and ends like an object, which HTML pages and truncated documents do not. */
function isWhole(media: string, body: Uint8Array): boolean {
  const text = (from: number, to?: number) => Buffer.from(body.subarray(from, to)).toString("latin1");
  if (media === "application/json") return /^\s*\{/.test(text(0, 64)) && /\}\s*$/.test(text(-64));
  if (media !== "application/x-ndjson") return true;
  return body.length === 0 || (/^\{/.test(text(0, 1)) && /\}\n$/.test(text(-2)));
}

function problemIn(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  try {
    return decodeURIComponent(header);
  } catch {
    return header;
  }
}

/** Error for a redirect. The client does not follow it, because its key is meant for this server only. */
function redirected(base: string, status: number, location: string | undefined): SvcError {
  const target = originOf(location, base);
  const to = target === null ? "" : ` to ${target}`;
  return new SvcError(
    "delivery_failed",
    `${hostOf(base)} answered ${status}, a redirect${to}. Redirects are not followed; use the server's own URL`,
  );
}

function originOf(location: string | undefined, base: string): string | null {
  if (location === undefined) return null;
  try {
    return new URL(location, base).origin;
  } catch {
    return null;
  }
}

const hostOf = (base: string): string => new URL(base).host;

function stranger(base: string, why: string): SvcError {
  return new SvcError(
    "delivery_failed",
    `${hostOf(base)} does not answer like svc: ${why}; check the server's URL and version`,
  );
}

/** The first mismatch that matters, or null. Newer servers may add fields, and new values in nested lists. */
function shapeProblem(shape: z.ZodType, value: unknown): string | null {
  const { error } = shape.safeParse(value);
  const issue = error?.issues.find((one) => !isNewer(one));
  if (issue === undefined) return null;
  const place = issue.path.join(".");
  return place === "" ? "the answer does not have the expected form" : `${place} is not as expected`;
}

function isNewer(issue: z.core.$ZodIssue): boolean {
  if (issue.code === "unrecognized_keys") return true;
  if (issue.code === "invalid_value") return issue.path.length > 1;
  return issue.code === "invalid_union" && issue.errors.some((branch) => branch.every(isNewer));
}
