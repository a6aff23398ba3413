/**
 * One connection to an upstream, in the protocol revision that the upstream speaks. Requests and responses pass
 * unchanged. Ids and progress tokens of different callers never collide.
 */
import {
  Client,
  type ClientCapabilities,
  type ServerCapabilities,
  type Transport,
} from "@modelcontextprotocol/client";
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { settleWithin } from "../../kernel/timeout.ts";
import type { CallCancellation } from "../call/cancellation.ts";
import { ANY_RESULT } from "../session/request-context.ts";
import { ChildTransport } from "./child-transport.ts";
import { RequestCorrelator, type SendMessage } from "./correlator.ts";
import { isRefused, NotSentError, wantsNewerEra } from "./failure.ts";
import { detectOlderTransport, RemoteTransport } from "./http-transport.ts";
import { callAsTask } from "./task-call.ts";

export const NEWER_PROTOCOL_VERSION = "2026-07-28";
const LISTEN_MS = 2_000;
const CONNECT_MS = { least: 10_000, most: 60_000 };

export interface ConnectionDeps {
  send: typeof globalThis.fetch;
  version: string;
  /** Aborts a connection attempt. */
  signal?: AbortSignal;
}

export interface ConnectionHooks {
  notification(method: string, params: JsonObject): void;
  closed(why: string): void;
  /** Reports protocol errors without consequences. */
  odd(problem: string): void;
  /** Handles requests of the upstream to its client. Without it, all such requests are rejected. */
  asked?:
    | ((method: string, params: JsonObject | undefined, signal: AbortSignal) => Promise<JsonObject>)
    | undefined;
}

export interface RequestOptions {
  timeout_ms: number;
  cancellation?: CallCancellation | undefined;
  onProgress?: ((params: JsonObject) => void) | undefined;
  headers?: Record<string, string> | undefined;
  /** Whether the owner of this connection answers the tool's requests for input. */
  fulfil?: boolean | undefined;
  /** Whether the called tool runs only as a task. */
  asTask?: boolean | undefined;
}

export class UpstreamConnection {
  private readonly client: Client;
  private readonly transport: Transport;
  private readonly progress = new Map<string | number, (params: JsonObject) => void>();
  private readonly own = new RequestCorrelator();
  private readonly raw: SendMessage;
  private tokens = 0;
  private older = false;
  private over = false;

  private readonly offered: ClientCapabilities;

  private constructor(client: Client, transport: Transport, offered: ClientCapabilities) {
    this.client = client;
    this.transport = transport;
    this.offered = offered;
    this.raw = (message) => transport.send(message);
  }

  static async open(
    spec: UpstreamSpec,
    parts: ConnectionDeps,
    hooks: ConnectionHooks,
    capabilities: ClientCapabilities = {},
  ): Promise<UpstreamConnection> {
    if ("url" in spec)
      return UpstreamConnection.attempt(spec, parts, hooks, capabilities, "auto").catch(
        async (error: unknown) => {
          throw (isRefused(error) && (await detectOlderTransport(spec, parts.send))) || error;
        },
      );
    try {
      // Start a child with the older handshake, because version negotiation makes some servers exit.
      return await UpstreamConnection.attempt(spec, parts, hooks, capabilities, "legacy");
    } catch (error) {
      if (!wantsNewerEra(error)) throw error;
      return UpstreamConnection.attempt(spec, parts, hooks, capabilities, { pin: NEWER_PROTOCOL_VERSION });
    }
  }

  private static async attempt(
    spec: UpstreamSpec,
    parts: ConnectionDeps,
    hooks: ConnectionHooks,
    capabilities: ClientCapabilities,
    mode: "auto" | "legacy" | { pin: string },
  ): Promise<UpstreamConnection> {
    const transport =
      "url" in spec ? new RemoteTransport(spec.url, spec.headers, parts.send) : new ChildTransport(spec);
    const info = { name: "svc-gateway", version: parts.version };
    const client = new Client(info, { capabilities, versionNegotiation: { mode } });
    const link = new UpstreamConnection(client, transport, capabilities);
    link.listen(hooks);
    const timeout = Math.min(Math.max(spec.timeout_ms, CONNECT_MS.least), CONNECT_MS.most);
    try {
      const { signal } = parts;
      await client.connect(transport, signal === undefined ? { timeout } : { timeout, signal });
      link.settleEra();
      await link.listenNewerEra(hooks);
      return link;
    } catch (error) {
      link.over = true;
      await transport.close().catch(() => {});
      const said = transport instanceof ChildTransport ? transport.complaint : "";
      if (said === "" || wantsNewerEra(error)) throw error;
      throw new Error(`${messageOf(error)}: ${said.slice(-500)}`, { cause: error });
    }
  }

  private listen(hooks: ConnectionHooks): void {
    const { client, progress } = this;
    client.onerror = (error) => hooks.odd(error.message);
    client.onclose = () => {
      this.own.close();
      if (this.over) return;
      this.over = true;
      const said = this.transport instanceof ChildTransport ? this.transport.complaint : "";
      hooks.closed(
        said === "" ? "the connection was closed" : `the connection was closed: ${said.slice(-500)}`,
      );
    };
    // The SDK's own progress handling loses notifications that arrive together with the response.
    client.setNotificationHandler("notifications/progress", ({ params }) => {
      progress.get(params.progressToken)?.(params as JsonObject);
    });
    client.fallbackNotificationHandler = async ({ method, params }) => {
      hooks.notification(method, (params ?? {}) as JsonObject);
    };
    const { asked } = hooks;
    if (asked === undefined) return;
    client.fallbackRequestHandler = ({ method, params }, { mcpReq }) =>
      asked(method, params as JsonObject | undefined, mcpReq.signal);
  }

  /** Intercepts responses to the gateway's own requests before the SDK handles the message. */
  private settleEra(): void {
    const { transport, own } = this;
    this.older = this.era === "legacy";
    const rest = transport.onmessage?.bind(transport);
    transport.onmessage = (message, extra) => {
      if (!own.take(message)) rest?.(message, extra);
    };
  }

  /** Subscribes to changes, and handles requests inside answers. The newer protocol version needs both. */
  private async listenNewerEra({ asked, odd }: ConnectionHooks): Promise<void> {
    const { client } = this;
    if (this.era !== "modern") return;
    if (asked !== undefined) this.answerInside(asked);
    const { tools, prompts, resources } = this.capabilities;
    const filter = {
      ...(tools?.listChanged ? { toolsListChanged: true as const } : {}),
      ...(prompts?.listChanged ? { promptsListChanged: true as const } : {}),
      ...(resources?.listChanged ? { resourcesListChanged: true as const } : {}),
    };
    if (Object.keys(filter).length === 0) return;
    const listening = client.listen(filter).catch((error: unknown) => odd(messageOf(error)));
    // A server that never confirms the subscription still works, but without change notifications.
    await settleWithin(listening, LISTEN_MS);
  }

  private answerInside(asked: NonNullable<ConnectionHooks["asked"]>): void {
    const { client, offered } = this;
    const methods = [
      offered.elicitation && "elicitation/create",
      offered.sampling && "sampling/createMessage",
      offered.roots && "roots/list",
    ] as const;
    for (const method of methods) {
      if (method === undefined) continue;
      client.setRequestHandler(
        method,
        ({ params }, { mcpReq }) =>
          asked(method, params as JsonObject | undefined, mcpReq.signal) as Promise<never>,
      );
    }
  }

  get era(): "legacy" | "modern" {
    return this.client.getProtocolEra() ?? "legacy";
  }

  get capabilities(): ServerCapabilities {
    return this.client.getServerCapabilities() ?? {};
  }

  get instructions(): string | undefined {
    return this.client.getInstructions();
  }

  get closed(): boolean {
    return this.over;
  }

  /** Whether the upstream holds a session for us, which it may forget. */
  get hasSession(): boolean {
    return this.transport.sessionId !== undefined;
  }

  async request(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject> {
    if (this.over) throw new NotSentError("it is not connected");
    const { onProgress, asTask } = options;
    const send = asTask === true && this.runsTasks ? this.taskCall : this.send;
    if (onProgress === undefined) return send.call(this, method, params, options);
    const token = `gw-${++this.tokens}`;
    this.progress.set(token, onProgress);
    try {
      return await send.call(this, method, withToken(params, token), options);
    } finally {
      // Progress that arrived with the response is still in the event loop.
      setImmediate(() => this.progress.delete(token));
    }
  }

  private get runsTasks(): boolean {
    return this.older && this.capabilities.tasks?.requests?.tools?.call !== undefined;
  }

  private taskCall(_method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject> {
    return callAsTask((method, sent, how) => this.send(method, sent, how), params, options);
  }

  /** Sends a request. An older upstream needs only an id; for a newer one the SDK adds the envelope. */
  private send(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject> {
    const { timeout_ms, cancellation, headers, fulfil } = options;
    if (this.older) return this.own.ask(this.raw, { method, params, timeout_ms, cancellation });
    return this.client.request({ method, params }, ANY_RESULT, {
      timeout: timeout_ms,
      ...(cancellation === undefined ? {} : { signal: cancellation.signal }),
      ...(headers === undefined ? {} : { headers }),
      ...(fulfil === true ? {} : { allowInputRequired: true }),
    }) as Promise<JsonObject>;
  }

  async notify(method: string, params?: JsonObject): Promise<void> {
    await this.client.notification(params === undefined ? { method } : { method, params });
  }

  async close(): Promise<void> {
    this.over = true;
    await this.client.close();
  }
}

function withToken(params: JsonObject, token: string): JsonObject {
  const meta = params["_meta"];
  return {
    ...params,
    _meta: { ...(typeof meta === "object" ? meta : {}), progressToken: token } as JsonObject,
  };
}
