/** Turns an operation's input into the HTTP request that a client sends. */
import type { HttpRow } from "./http-row.ts";

interface WrittenRequest {
  method: HttpRow["method"];
  /** Path including the query. */
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown> | undefined;
}

/** A message of `/v1/stream`, without its id. */
export interface StreamMessage {
  operation: string;
  params: Record<string, string>;
  body?: Record<string, unknown>;
  idempotency_key?: string;
}

/** Null for an operation that a stream does not answer, and for a header that its messages do not have. */
export function writeMessage(row: HttpRow, input: object): StreamMessage | null {
  const { output } = row.op;
  if ("content_types" in output || "text_of" in output) return null;
  const given = definedFields(input);
  const params: Record<string, string> = {};
  for (const [name, { field, write }] of [...Object.entries(row.params), ...Object.entries(row.query)])
    if (given[field] !== undefined) params[name] = write(given[field]);
  const { idempotency_key } = given;
  const isPlain = row.headers.every(({ field }) => field === "idempotency_key" || given[field] === undefined);
  if (!isPlain) return null;
  return {
    operation: row.op.id,
    params,
    ...(row.body ? { body: bodyOf(row, given) } : {}),
    ...(typeof idempotency_key === "string" ? { idempotency_key } : {}),
  };
}

export function writeRequest(row: HttpRow, input: object): WrittenRequest {
  const given = definedFields(input);
  const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const { field, write } = row.params[name]!;
    return encodeURIComponent(write(given[field]));
  });
  const query = new URLSearchParams();
  for (const [name, { field, write }] of Object.entries(row.query))
    if (given[field] !== undefined) query.set(name, write(given[field]));
  const headers: Record<string, string> = {};
  for (const { header, field, write } of row.headers)
    if (given[field] !== undefined) headers[header] = write(given[field]);
  return {
    method: row.method,
    path: query.size === 0 ? path : `${path}?${query}`,
    headers,
    body: row.body ? bodyOf(row, given) : undefined,
  };
}

const definedFields = (input: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));

const bodyOf = (row: HttpRow, given: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !row.placed.has(name)));
