/** What comes with a request of an agent, whichever way it came. */
import type { AuthInfo, RequestId, Server, ServerContext } from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { Cancellation } from "./cancellation.ts";
import type { BoundRun } from "./runs.ts";

/** What the HTTP surface found out about a request, beside its message. */
export interface RequestExtra {
  [name: string]: unknown;
  /** Who asks, with the authority of this very request. */
  principal: Principal;
  /** The same once more, for an answer that comes later; throws where the credential no longer counts here. */
  again(): Principal;
  run: BoundRun | undefined;
  /** The method of the request, where there is one. */
  method: string | undefined;
}

export function extraOf(auth: AuthInfo | undefined): RequestExtra | undefined {
  return auth?.extra as RequestExtra | undefined;
}

export interface RequestContext {
  /** Undefined where only the one who started the process can ask. */
  extra: RequestExtra | undefined;
  /** The request's `_meta`, without what the newer era reserves. */
  meta: JsonObject;
  /** What the newer era reserves: the client's abilities and the log level it wants. */
  envelope: JsonObject | undefined;
  /** What a client sends along when it repeats a call with the input that was asked for. */
  retried: JsonObject | undefined;
  /** The run that this very request names. */
  run: BoundRun | null;
  cancellation: Cancellation;
  /** Tells the client something before the answer, on the same stream. */
  notify(method: string, params: JsonObject): void;
  /** Asks the client something, on the same stream. */
  ask(method: string, params: JsonObject | undefined, options: AskOptions): Promise<JsonObject>;
}

interface AskOptions {
  signal: AbortSignal;
  timeout: number;
}

/** Answers pass as they are. */
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
    cancellation: Cancellation.of(mcpReq.signal),
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

/** The context of a call that did not come through the SDK, in a session of an older revision. */
export function directContext(
  server: Server,
  params: JsonObject,
  { id, auth, cancellation }: { id: RequestId; auth: AuthInfo | undefined; cancellation: Cancellation },
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

/** Keys that the protocol keeps for itself say nothing in a revision that does not know them. */
function withoutReserved(meta: JsonObject): JsonObject {
  const names = Object.keys(meta);
  if (!names.some((name) => name.startsWith(RESERVED))) return meta;
  return Object.fromEntries(Object.entries(meta).filter(([name]) => !name.startsWith(RESERVED)));
}
const RESERVED = "io.modelcontextprotocol/";
