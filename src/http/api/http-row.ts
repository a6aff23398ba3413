/**
 * A row of the HTTP table: the method and path of an operation, and how path, query, headers and body become its input.
 * All other fields travel in the body.
 */
import type { z } from "zod";
import type { ServiceOperation } from "../../operations/pipeline/operation.ts";

/** Carries a problem that the reader of a document must know about, percent-encoded. */
export const PROBLEM_HEADER = "svc-problem";
/** The code of an error's cause, so that programs do not have to parse the message. */
export const ERROR_CODE_HEADER = "svc-error-code";
/** The facts of a 409 as percent-encoded JSON, because an error body contains only the message. */
export const FACTS_HEADER = "svc-facts";

/**
 * A client of a stream that sends it gets the headers of HTTP answers, such as the code of an error, in `headers`. The
 * server confirms it.
 */
export const STREAM_HEADERS_HEADER = "svc-answer-headers";

/** Marks a replayed answer to an earlier request with the same Idempotency-Key. */
export const REPLAYED_HEADER = "idempotency-replayed";

export type HttpMethod = "GET" | "POST" | "PATCH" | "DELETE";

/** A field that travels as text. */
export interface FieldBinding {
  field: string;
  /** Converts the text to the operation's value. Undefined if the text is invalid. */
  read(text: string): unknown;
  write(value: unknown): string;
  /** Message for an invalid value. Replaces the schema's own message. */
  says?: string;
  /** OpenAPI schema of the text, if it differs from the operation's schema of the field. */
  schema?: Record<string, unknown>;
}

export interface HeaderField {
  /** The header name as OpenAPI shows it. */
  header: string;
  field: string;
  about: string;
  /** OpenAPI schema of the header. Omitted for a header that the document does not list. */
  schema?: Record<string, unknown>;
  read(text: string | undefined): unknown;
  write(value: unknown): string;
}

export interface HttpRow {
  readonly op: ServiceOperation;
  readonly method: HttpMethod;
  /** With `{id}` for parameters, as OpenAPI writes them. */
  readonly path: string;
  readonly status: number;
  /** Shape of the answer with `status`, if the operation can also return other shapes. */
  readonly shape: z.ZodType | undefined;
  /** Other successful statuses, each with a predicate for the answers that use it. */
  readonly also: readonly { status: number; about: string; shape: z.ZodType; is(answer: object): boolean }[];
  readonly params: Readonly<Record<string, FieldBinding>>;
  readonly query: Readonly<Record<string, FieldBinding>>;
  readonly headers: readonly HeaderField[];
  readonly body: boolean;
  /** Fields that travel outside the body and are rejected inside it. */
  readonly placed: ReadonlySet<string>;
}

interface Places {
  status?: number;
  shape?: z.ZodType;
  also?: HttpRow["also"];
  params?: Readonly<Record<string, FieldBinding>>;
  query?: readonly FieldBinding[];
  headers?: readonly HeaderField[];
}

export function httpRoute(
  place: `${HttpMethod} ${"" | "/access"}/v1/${string}`,
  op: ServiceOperation,
  places: Places = {},
): HttpRow {
  const [method, path] = place.split(" ") as [HttpMethod, string];
  const { status = 200, shape, also = [], params = {}, headers = [] } = places;
  const query = Object.fromEntries((places.query ?? []).map((field) => [field.field, field]));
  const placed = new Set(
    [...Object.values(params), ...Object.values(query), ...headers].map((one) => one.field),
  );
  const body = method === "POST" || method === "PATCH";
  return { op, method, path, status, shape, also, params, query, headers, body, placed };
}

export const textField = (field: string): FieldBinding => ({ field, read: (text) => text, write: String });

/** Field of digits without a sign and without leading zeros. */
export const integerField = (field: string, says: string): FieldBinding => ({
  field,
  read: (text) => (/^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined),
  write: String,
  says,
});

export const flagField = (field: string): FieldBinding => ({
  field,
  read: (text) => (text === "1" ? true : text === "0" ? false : undefined),
  write: (value) => (value === true ? "1" : "0"),
  says: 'must be "0" or "1"',
  schema: { type: "string", enum: ["0", "1"] },
});
