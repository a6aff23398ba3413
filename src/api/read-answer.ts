/**
 * Reading what a server answered to an operation. The address may be mistyped, a proxy may stand before it, and another
 * program may listen there: an answer counts only where it has the operation's shape.
 */
import type { z } from "zod";
import { Content, JsonText, type Operation } from "../app/door/operation.ts";
import type { EgressResponse } from "../egress/egress.ts";
import { SvcError } from "../kernel/errors.ts";
import { parseJsonBytes } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { PROBLEM_HEADER } from "./row.ts";

/** Documents, such as an export of the ledger, may be longer than lists and single things. */
export function largestAnswer({ output }: Operation): number {
  return "content_types" in output ? LIMITS.document_bytes : LIMITS.answer_bytes;
}

export function readAnswer({ output }: Operation, base: string, response: EgressResponse): unknown {
  const { status, headers, body } = response;
  if (status < 200 || status >= 300) throw redirected(base, status, headers["location"]);
  if ("content_types" in output) return readContent(output.content_types, base, response);
  let value: unknown;
  try {
    value = parseJsonBytes(body);
  } catch {
    throw stranger(base, "the answer is not JSON");
  }
  const wrong = shapeProblem("text_of" in output ? output.text_of : output, value);
  if (wrong !== null) throw stranger(base, wrong);
  return "text_of" in output ? new JsonText(Buffer.from(body).toString("utf8")) : value;
}

function readContent(types: readonly string[], base: string, { headers, body }: EgressResponse): Content {
  const type = headers["content-type"] ?? "application/octet-stream";
  const media = type.split(";", 1)[0]!.trim().toLowerCase();
  if (!types.includes(media) || !isWhole(media, body))
    throw stranger(base, `the answer is not ${types.join(" or ")}`);
  const name = /filename="([^"]*)"/.exec(headers["content-disposition"] ?? "")?.[1];
  return new Content(type, body, name, problemIn(headers[PROBLEM_HEADER]));
}

/** JSON documents begin and end as objects do: neither a page nor half a document passes for one. */
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

/** A redirect is not followed: the answer of another address is not this server's, and the key is for this one. */
function redirected(base: string, status: number, location: string | undefined): SvcError {
  const target = originOf(location, base);
  const to = target === null ? "" : ` to ${target}`;
  return new SvcError(
    "delivery_failed",
    `${hostOf(base)} answered ${status}, a redirect${to}, which is not followed; name the server by its own address`,
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
    `${hostOf(base)} does not answer as svc does: ${why}; check the server's address and version`,
  );
}

/** What an answer lacks; null where it can be worked with. Newer servers may add fields, and words to inner lists. */
function shapeProblem(shape: z.ZodType, value: unknown): string | null {
  const { error } = shape.safeParse(value);
  const issue = error?.issues.find((one) => !isNewer(one));
  if (issue === undefined) return null;
  const place = issue.path.join(".");
  return place === "" ? "the answer is not of the expected form" : `${place} is not as expected`;
}

function isNewer(issue: z.core.$ZodIssue): boolean {
  if (issue.code === "unrecognized_keys") return true;
  if (issue.code === "invalid_value") return issue.path.length > 1;
  return issue.code === "invalid_union" && issue.errors.some((branch) => branch.every(isNewer));
}
