/**
 * A row of the HTTP table: under which method and path an operation is found, and how path, query, headers
 * and body become its input. What is in none of the named places is the body.
 */
import type { z } from "zod";
import type { Operation } from "../app/door/operation.ts";

/** Carries what the reader of a document must be told beside it, percent-encoded. */
export const PROBLEM_HEADER = "svc-problem";
/** The code of an error's cause, so that a program need not read the message. */
export const ERROR_CODE_HEADER = "svc-error-code";
/** What a program needs of a 409, as JSON in percent-encoding: the body of an error has its message alone. */
export const FACTS_HEADER = "svc-facts";

/** Stands at an answer that was given before, under the same Idempotency-Key. */
export const REPLAYED_HEADER = "idempotency-replayed";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** A field that travels as text. */
export interface Field {
  field: string;
  /** The text as the operation takes it; undefined for a text that is none. */
  read(text: string): unknown;
  write(value: unknown): string;
  /** What is wrong with one that the operation does not take, instead of its own words. */
  says?: string;
  /** How the document describes the text, where it is not as the operation describes the field. */
  schema?: Record<string, unknown>;
}

export interface HeaderField {
  /** As the document writes it. */
  header: string;
  field: string;
  about: string;
  /** How the document describes it; left out where the header is of use without being named. */
  schema?: Record<string, unknown>;
  read(text: string | undefined): unknown;
  write(value: unknown): string;
}

export interface Row {
  readonly op: Operation;
  readonly method: Method;
  /** With `{id}` for parameters, as OpenAPI writes them. */
  readonly path: string;
  readonly status: number;
  /** What is answered with `status`, where that is not all of what the operation answers. */
  readonly shape: z.ZodType | undefined;
  /** Other successes, each with the answers that have it. */
  readonly also: readonly { status: number; about: string; shape: z.ZodType; is(answer: object): boolean }[];
  readonly params: Readonly<Record<string, Field>>;
  readonly query: Readonly<Record<string, Field>>;
  readonly headers: readonly HeaderField[];
  readonly body: boolean;
  /** Fields that have a place of their own, and may not come in the body. */
  readonly placed: ReadonlySet<string>;
}

interface Places {
  status?: number;
  shape?: z.ZodType;
  also?: Row["also"];
  params?: Readonly<Record<string, Field>>;
  query?: readonly Field[];
  headers?: readonly HeaderField[];
}

export function at(place: `${Method} /v1/${string}`, op: Operation, places: Places = {}): Row {
  const [method, path] = place.split(" ") as [Method, string];
  const { status = 200, shape, also = [], params = {}, headers = [] } = places;
  const query = Object.fromEntries((places.query ?? []).map((field) => [field.field, field]));
  const placed = new Set(
    [...Object.values(params), ...Object.values(query), ...headers].map((one) => one.field),
  );
  const body = method === "POST" || method === "PATCH";
  return { op, method, path, status, shape, also, params, query, headers, body, placed };
}

export const plain = (field: string): Field => ({ field, read: (text) => text, write: String });

/** Digits without a sign and without leading zeros. */
export const whole = (field: string, says: string): Field => ({
  field,
  read: (text) => (/^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined),
  write: String,
  says,
});

export const flag = (field: string): Field => ({
  field,
  read: (text) => (text === "1" ? true : text === "0" ? false : undefined),
  write: (value) => (value === true ? "1" : "0"),
  says: 'must be "0" or "1"',
  schema: { type: "string", enum: ["0", "1"] },
});
