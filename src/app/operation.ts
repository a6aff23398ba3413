/**
 * An operation is declared once: who may call it, what it takes, what it answers, what it does. The HTTP
 * route, the OpenAPI document, the role matrix and the other surfaces are all made from this.
 */
import type { z } from "zod";
import type { Principal, Role } from "../model/roles.ts";
import type { App } from "./app.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Who is calling, and what belongs to this one request. */
export interface Call {
  app: App;
  principal: Principal;
  /** Who asks by now, for an answer that had to wait; throws where the credential no longer counts. */
  again?: () => Principal | Promise<Principal>;
  /** Aborts when the client goes away or the server stops. */
  signal: AbortSignal;
  headers: {
    idempotency_key: string | undefined;
    if_match: string | undefined;
    accept: string | undefined;
  };
  /** Set by an operation whose success has another status this time. */
  status?: number;
  /** What the surface holds against an intent, beside everything the engine knows; clients cannot set it. */
  objections?: readonly string[];
}

/** An answer that is not JSON. */
export class Content {
  readonly type: string;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  readonly filename: string | undefined;
  constructor(type: string, body: Content["body"], filename?: string) {
    this.type = type;
    this.body = body;
    this.filename = filename;
  }
}

type Shape = z.ZodType;
export type RequestHeader = "Idempotency-Key" | "If-Match";

export interface Operation<P extends Shape = Shape, Q extends Shape = Shape, B extends Shape = Shape> {
  id: string;
  summary: string;
  method: Method;
  /** With `{id}` for parameters, as OpenAPI writes them. */
  path: string;
  role: Role;
  /** Open to every authenticated role; what each sees of it is narrowed by ownership. */
  any_role?: boolean;
  params?: P;
  query?: Q;
  body?: B;
  /** What a successful answer looks like, for the OpenAPI document. */
  output: Shape | { content_types: readonly string[] };
  status: number;
  /** Other successes, with what they answer. */
  also?: Record<number, { description: string; output: Shape }>;
  /** Request headers that it heeds beside the credential. */
  headers?: readonly RequestHeader[];
  /** Statuses beyond 400, 401 and 403 that it may answer, with their meaning. */
  errors?: Record<number, string>;
  /** Why the feature is not enabled here, or null when it is. Asked only after the role was checked. */
  feature?(app: App): string | null;
  /** Where a delegate without the role may act too; the operation then checks by itself. */
  role_or_delegate?: boolean;
  run(call: Call, input: { params: z.output<P>; query: z.output<Q>; body: z.output<B> }): Promise<unknown>;
}

/** Keeps the schemas' types inside `run`, and forgets them outside. */
export function operation<P extends Shape, Q extends Shape, B extends Shape>(
  op: Operation<P, Q, B>,
): Operation {
  return op as unknown as Operation;
}
