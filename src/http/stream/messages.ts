/** Messages of a stream: one request of an operation each, and its answer. */
import * as z from "zod";
import { invalidError, notFoundError, SvcError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { describeIssues } from "../../operations/pipeline/validation-messages.ts";
import type { HttpRow } from "../api/http-row.ts";
import { HTTP_TABLE } from "../api/http-table.ts";
import type { RawRequest } from "../api/read-request.ts";
import { OPEN_PATHS } from "../routes/openapi-open.ts";

const messageShape = z.strictObject({
  id: z.union([z.string().min(1).max(SERVICE_LIMITS.stream_id_chars), z.int()]),
  operation: z.string(),
  params: z.record(z.string(), z.union([z.string(), z.int(), z.boolean()])).optional(),
  body: z.unknown().optional(),
  idempotency_key: z.string().optional(),
});

export type MessageId = string | number | null;

/** A request that the stream can carry out. */
interface StreamRequest {
  row: HttpRow;
  raw: RawRequest;
}

/** Operations of the API document without a role: health checks, documents, and routes that verify a signature. */
const OPEN_IDS: ReadonlySet<string> = new Set(
  Object.values(OPEN_PATHS).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  ),
);
const ROWS = new Map(HTTP_TABLE.map((row) => [row.op.id, row]));

/** The id of a message, or null if it has none. */
export function idOf(message: JsonValue): MessageId {
  const id = (message as { id?: unknown } | null)?.id;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

const LEADING_ID = /^\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.){1,128}"|-?\d{1,15})\s*[,}]/;

/** The id of a message that is too large to be parsed, if the message begins with it. */
export function leadingIdOf(bytes: Uint8Array): MessageId {
  const [, id] = LEADING_ID.exec(Buffer.from(bytes.buffer, bytes.byteOffset, 1_024).toString("utf8")) ?? [];
  return id === undefined ? null : (JSON.parse(id) as string | number);
}

/** Finds the operation of a message and its input. Throws if the message is not a request that a stream can answer. */
export function readMessage(message: JsonValue): StreamRequest {
  const parsed = messageShape.safeParse(message);
  if (!parsed.success) throw invalidError(describeIssues(parsed.error, "message"));
  const { operation, params = {}, body, idempotency_key } = parsed.data;
  if (OPEN_IDS.has(operation))
    throw invalidError(`operation: ${operation} is not available on a stream; request it over HTTP`);
  const row = ROWS.get(operation);
  if (row === undefined)
    throw notFoundError(
      `operation: no operation ${JSON.stringify(operation.slice(0, 128))}; use the operationId of a /v1 route`,
      "unknown_route",
    );
  if ("content_types" in row.op.output)
    throw invalidError(`operation: ${operation} answers a file or a stream; request it over HTTP`);
  const inPath: Record<string, string> = {};
  const inQuery: Record<string, string> = {};
  for (const name in params)
    (Object.hasOwn(row.params, name) ? inPath : inQuery)[name] = textOf(params[name]!);
  for (const name in row.params)
    if (params[name] === undefined) throw invalidError(`params.${name}: is missing`);
  if (body !== undefined && !row.body) throw invalidError(`body: ${operation} takes none; use params`);
  const headers = idempotency_key === undefined ? {} : { "idempotency-key": idempotency_key };
  if (idempotency_key !== undefined && !row.headers.some(({ field }) => field === "idempotency_key"))
    throw invalidError(`idempotency_key: ${operation} takes none`);
  return {
    row,
    raw: { params: inPath, query: inQuery, headers, body },
  };
}

const textOf = (value: string | number | boolean): string =>
  typeof value === "boolean" ? (value ? "1" : "0") : String(value);

export const TOO_LARGE = new SvcError("too_large", "the message is over 1 MB");
