/** What the agent and the operator endpoint have in common: one SDK server per session, one error table. */
import { SdkHttpError } from "@modelcontextprotocol/client";
import {
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import { ERRORS, messageOf, SvcError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Logger } from "../telemetry/log.ts";

type Capabilities = NonNullable<ServerOptions["capabilities"]>;

interface PeerOptions {
  version: string;
  capabilities: Capabilities;
  /** What is declared, beside, to clients of that revision of the protocol and later ones. */
  since?: { revision: string; capabilities: Capabilities } | undefined;
  instructions: string;
  log: Logger;
  /** False for a request that is not served here, so that the SDK answers it as it answers any unknown method. */
  serves?: boolean;
  handle(method: string, params: JsonObject, context: ServerContext): Promise<JsonObject>;
}

/** Making one is costly, and a server is made for every session-less request. */
const VALIDATOR = new AjvJsonSchemaValidator();

class Peer extends Server {
  private readonly since: PeerOptions["since"];

  constructor(info: { name: string; version: string }, options: ServerOptions, since: PeerOptions["since"]) {
    super(info, options);
    this.since = since;
  }

  override getCapabilities(): Capabilities {
    const declared = super.getCapabilities();
    const { since } = this;
    if (since === undefined || (this.getNegotiatedProtocolVersion() ?? "") < since.revision) return declared;
    return { ...declared, ...since.capabilities };
  }
}

export function createPeer({
  version,
  capabilities,
  since,
  instructions,
  log,
  serves = true,
  handle,
}: PeerOptions): Server {
  const options = { capabilities, instructions, jsonSchemaValidator: VALIDATOR };
  const server = new Peer({ name: "svc-gateway", version }, options, since);
  // The gateway answers this one itself, because the level is also the upstreams' business.
  server.removeRequestHandler("logging/setLevel");
  server.onerror = (error) => log.debug("session oddity", { problem: error.message });
  if (!serves) return server;
  server.fallbackRequestHandler = async ({ method, params }, context) => {
    try {
      return await handle(method, (params ?? {}) as JsonObject, context);
    } catch (error) {
      throw asProtocolError(error, log);
    }
  };
  return server;
}

export function methodNotFound(method: string, why = ""): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.MethodNotFound, `method ${method} is not available here${why}`);
}

export function invalidParams(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}

export function asProtocolError(error: unknown, log: Logger): ProtocolError {
  if (error instanceof ProtocolError) return error;
  if (error instanceof SvcError) {
    const { http, rpc } = ERRORS[error.code];
    if (http === 503) log.warn("call refused", { error: error.message });
    return new ProtocolError(rpc, error.message);
  }
  if (error instanceof SdkHttpError) {
    // Its message holds what the upstream said, and that may repeat the upstream's address.
    const { status } = error;
    log.warn("an upstream refused a request", { status });
    return new ProtocolError(ProtocolErrorCode.InternalError, `the upstream answered HTTP ${status}`);
  }
  log.error("unexpected failure", { error: messageOf(error), stack: (error as Error)?.stack });
  return new ProtocolError(ProtocolErrorCode.InternalError, "internal error; see the gateway's log");
}
