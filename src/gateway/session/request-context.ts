/** Context of an agent's request, independent of the transport. */
import type { AuthInfo, RequestId, Server, ServerContext } from "@modelcontextprotocol/server";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { CallCancellation } from "../call/cancellation.ts";
import type { BoundRun } from "./runs.ts";

/** Facts about a request that the HTTP surface adds to its message. */
export interface RequestExtra {
  [name: string]: unknown;
  /** The caller with its authority at the time of this request. */
  principal: CallerPrincipal;
  /** Checks the credential again for a delayed answer. Throws if it has become invalid. */
  again(): CallerPrincipal;
  run: BoundRun | undefined;
  /** The request's method, if known. */
  method: string | undefined;
}

export function extraOf(auth: AuthInfo | undefined): RequestExtra | undefined {
  return auth?.extra as RequestExtra | undefined;
}

export interface RequestContext {
  /** Undefined on stdio, where only the user who started the process can send requests. */
  extra: RequestExtra | undefined;
  /** The request's `_meta`, without the keys that the newer protocol version reserves. */
  meta: JsonObject;
  /** The reserved keys of the newer version: client capabilities and log level. */
  envelope: JsonObject | undefined;
  /** State and input that a client adds when it repeats a call after a question. */
  retried: JsonObject | undefined;
  /** The run that this request names. */
  run: BoundRun | null;
  cancellation: CallCancellation;
  /** Sends a notification before the answer, on the same stream. */
  notify(method: string, params: JsonObject): void;
  /** Sends a request to the client, on the same stream. */
  ask(method: string, params: JsonObject | undefined, options: AskOptions): Promise<JsonObject>;
}

interface AskOptions {
  signal: AbortSignal;
  timeout: number;
}

/** Result schema that accepts every answer unchanged. */
export const ANY_RESULT = {
  "~standard": {
    version: 1 as const,
    vendor: "svc",
    validate: (value: unknown) => ({ value: value as JsonObject }),
  },
};

export function fromSdk({ mcpReq, http }: ServerContext): RequestContext {
  return {
    meta: isJsonObject(mcpReq._meta) ? (mcpReq._meta as JsonObject) : {},
    envelope: mcpReq.envelope as JsonObject | undefined,
    retried: retriedWith(mcpReq.requestState(), mcpReq.inputResponses),
    extra: extraOf(http?.authInfo),
    run: extraOf(http?.authInfo)?.run ?? null,
    cancellation: CallCancellation.of(mcpReq.signal),
    notify: (method, params) => void mcpReq.notify({ method, params }).catch(() => {}),
    ask: (method, params, options) =>
      mcpReq.send(
        params === undefined ? { method } : { method, params },
        ANY_RESULT,
        options,
      ) as Promise<JsonObject>,
  };
}

function retriedWith(state: unknown, responses: unknown): JsonObject | undefined {
  if (state === undefined && responses === undefined) return undefined;
  return {
    ...(responses === undefined ? {} : { inputResponses: responses as JsonObject }),
    ...(state === undefined ? {} : { requestState: state as string }),
  };
}

/** Context of a call that bypassed the SDK, in a session of an older revision. */
export function directContext(
  server: Server,
  params: JsonObject,
  { id, auth, cancellation }: { id: RequestId; auth: AuthInfo | undefined; cancellation: CallCancellation },
): RequestContext {
  const related = { relatedRequestId: id };
  return {
    meta: isJsonObject(params["_meta"]) ? withoutReserved(params["_meta"]) : {},
    envelope: undefined,
    retried: undefined,
    extra: extraOf(auth),
    run: extraOf(auth)?.run ?? null,
    cancellation,
    notify: (method, told) => void server.notification({ method, params: told }, related).catch(() => {}),
    ask: (method, asked, options) =>
      server.request(asked === undefined ? { method } : { method, params: asked }, ANY_RESULT, {
        ...options,
        ...related,
      }) as Promise<JsonObject>,
  };
}

/** Drops keys that the protocol reserves, because they have no meaning in older revisions. */
function withoutReserved(meta: JsonObject): JsonObject {
  const names = Object.keys(meta);
  if (!names.some((name) => name.startsWith(RESERVED))) return meta;
  return Object.fromEntries(Object.entries(meta).filter(([name]) => !name.startsWith(RESERVED)));
}
const RESERVED = "io.modelcontextprotocol/";
