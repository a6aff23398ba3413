/** MCP server that the agent and the operator endpoint share: one SDK server per session, one error table. */
import { SdkHttpError } from "@modelcontextprotocol/client";
import {
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import { ERROR_KINDS, messageOf, SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";

type Capabilities = NonNullable<ServerOptions["capabilities"]>;

interface PeerOptions {
  version: string;
  capabilities: Capabilities;
  /** Additional capabilities for clients of that protocol revision and later ones. */
  since?: { revision: string; capabilities: Capabilities } | undefined;
  instructions: string;
  log: ServiceLogger;
  /** False for a request that this server does not handle, so that the SDK rejects it like any unknown method. */
  serves?: boolean;
  handle(method: string, params: JsonObject, context: ServerContext): Promise<JsonObject>;
}

/** Shared because it is costly to create, and every request without a session creates a server. */
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
  // The gateway handles this method, because it must also pass the level to the upstreams.
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

export function asProtocolError(error: unknown, log: ServiceLogger): ProtocolError {
  if (error instanceof ProtocolError) return error;
  if (error instanceof SvcError) {
    const { http, rpc } = ERROR_KINDS[error.code];
    if (http === 503) log.warn("call refused", { error: error.message });
    return new ProtocolError(rpc, error.message);
  }
  if (error instanceof SdkHttpError) {
    // The error message contains the upstream's response, which may repeat the upstream's URL.
    const { status } = error;
    log.warn("an upstream refused a request", { status });
    return new ProtocolError(ProtocolErrorCode.InternalError, `the upstream answered HTTP ${status}`);
  }
  log.error("unexpected failure", { error: messageOf(error), stack: (error as Error)?.stack });
  return new ProtocolError(ProtocolErrorCode.InternalError, "internal error; see the gateway's log");
}
