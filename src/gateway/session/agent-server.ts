/**
 * MCP server for agents. It offers the upstreams' tools under governance, a few read-only tools of the service, and the
 * other methods that an upstream's passthrough allows. One instance serves one session, or one request of a client
 * without sessions.
 */
import { CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, type Server } from "@modelcontextprotocol/server";
import { isPersonal } from "../../config/sections/gateway.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { type GatewayCall, isOwnTool, progressOf, unknownTool } from "../call/call-request.ts";
import { governedCall, isToolCallParams } from "../call/governed-call.ts";
import type { ToolRoute } from "../catalog/catalog.ts";
import type { McpGateway } from "../gateway.ts";
import type { DirectRequest } from "../http/session-transport.ts";
import { AGENT_TOOLS } from "../tools/agent-tools.ts";
import { callOwnTool } from "../tools/own-tool.ts";
import type { ConnectionOwner } from "../upstream/connection-pool.ts";
import { requiresTask } from "../upstream/task-call.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import { consentBefore, withoutConsentAnswer } from "../wait/consent-wait.ts";
import { declaresTasks, TASKS_EXTENSION } from "../wait/protocol-wait.ts";
import {
  answerOlder,
  asksForTask,
  OLDER_TASKS,
  TASKS_CAPABILITY,
  takingTasks,
} from "../wait/tasks-2025-11-25.ts";
import { answerNewer, bindTasks } from "../wait/tasks-2026-07-28.ts";
import { CallWaits } from "../wait/wait-strategy.ts";
import { isLogLevel, type McpLogLevel, meetsLevel } from "./log-level.ts";
import { asProtocolError, createPeer, invalidParams, methodNotFound } from "./mcp-server.ts";
import { ANY_RESULT, directContext, fromSdk, type RequestContext } from "./request-context.ts";
import { isOurState } from "./request-state.ts";
import type { BoundRun, RunOf } from "./runs.ts";
import { allowedCapabilities, principalOwner, SessionConnections } from "./session-connections.ts";

interface AgentOptions {
  /** The only principal of a stdio gateway. Null if each request carries its own principal. */
  local: CallerPrincipal | null;
  /** Finds the run of a principal. Null if every call gets a new run. */
  run: RunOf | null;
  /** Whether the client named this run. */
  named: boolean;
  era: "legacy" | "modern";
  /** The method of the request, for an instance that serves only one. */
  method?: string | undefined;
}

const TOOLS_CHANGED = "notifications/tools/list_changed";
/** Time limit for the user or the model behind the client to answer an upstream. */
const ASK_MS = 600_000;

export class AgentPeer {
  readonly server: Server;
  readonly era: "legacy" | "modern";
  private readonly gateway: McpGateway;
  private readonly local: CallerPrincipal | null;
  private readonly run: RunOf | null;
  private readonly named: boolean;
  private readonly links: SessionConnections;
  private readonly waits: CallWaits;
  private readonly calls = new Map<UpstreamServer, RequestContext[]>();
  private readonly holderKeys = new Set<string>();
  private level: McpLogLevel | null = null;

  constructor(gateway: McpGateway, { local, run, named, era, method }: AgentOptions) {
    this.gateway = gateway;
    this.local = local;
    this.run = run;
    this.named = named;
    this.era = era;
    const { app, passthrough } = gateway;
    const tasks = app.settings.approvals.wait_ms > 0;
    this.server = createPeer({
      version: app.version,
      capabilities: {
        tools: { listChanged: true },
        logging: {},
        ...(passthrough.has("prompts") ? { prompts: { listChanged: true } } : {}),
        ...(passthrough.has("resources") ? { resources: { subscribe: true, listChanged: true } } : {}),
        ...(passthrough.has("completions") ? { completions: {} } : {}),
        ...(tasks && era === "modern" ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
      },
      since:
        tasks && era === "legacy"
          ? { revision: OLDER_TASKS, capabilities: { tasks: TASKS_CAPABILITY } }
          : undefined,
      instructions: [...gateway.instructions(), gateway.listing.instructions()].join("\n\n"),
      log: app.log,
      serves: method === undefined || /^(?:tools|tasks)\//.test(method) || passthrough.serves(method),
      handle: (method, params, context) => this.handle(method, params, fromSdk(context)),
    });
    if (tasks && era === "modern")
      bindTasks(this.server, (method, params, context) => this.handle(method, params, context));
    this.waits = new CallWaits(gateway, {
      server: this.server,
      asking: (context) => this.asking(context),
      govern: (run, asked, context) => this.govern(run, asked, context),
      project: (result, route) => this.project(result, route),
    });
    this.links = new SessionConnections({
      clientCapabilities: () => this.server.getClientCapabilities(),
      ask: (upstream, method, params, signal) => this.ask(upstream, method, params, signal),
      notification: (upstream, method, params) => this.fromOwnLink(upstream, method, params),
    });
    this.server.setNotificationHandler("notifications/roots/list_changed", () =>
      this.links.notify("notifications/roots/list_changed"),
    );
  }

  private async handle(method: string, params: JsonObject, context: RequestContext): Promise<JsonObject> {
    if (method === "tools/call") return this.callTool(params, context);
    if (method === "tools/list") return this.listTools(context);
    if (method === "logging/setLevel") return this.setLevel(params);
    const { passthrough, subscriptions, tasks } = this.gateway;
    if (method.startsWith("tasks/")) {
      const principal = this.asking(context);
      if (this.era === "modern") return answerNewer(tasks, method, params, principal, context);
      if (this.takesTasks) return answerOlder(tasks, method, params, principal, context);
    }
    const request = {
      method,
      params,
      input: context.retried,
      cancellation: context.cancellation,
      holder: (upstream: UpstreamServer) => this.holder(upstream, context),
      meta: (upstream: UpstreamServer) => this.envelope(upstream, context),
      rounds: (upstream: UpstreamServer) => this.rounds(upstream, context),
    };
    return subscriptions.around(method, params["uri"], this, () => passthrough.handle(request));
  }

  /** The principal of the request. Authority belongs to each request and not to its session. */
  private asking({ extra }: RequestContext): CallerPrincipal {
    const principal = extra?.principal ?? this.local;
    if (principal === null) throw new Error("the request has no principal");
    return principal;
  }

  /** Owner of the connection that a request to the upstream uses. */
  private holder(
    upstream: UpstreamServer,
    context: RequestContext,
    run?: BoundRun,
  ): ConnectionOwner | undefined {
    const principal = this.asking(context);
    const alone = this.local !== null;
    const holder =
      this.era === "legacy"
        ? this.links.to(upstream, principal, alone)
        : alone && !isPersonal(upstream.spec)
          ? undefined
          : principalOwner(upstream, principal);
    if (holder !== undefined) this.holderKeys.add(holder.key);
    if (run !== undefined && this.links.holds(upstream)) this.gateway.sessions.note(run.run_id, this.links);
    return holder;
  }

  /** The run that the request names, or else the run of its session or principal. */
  private async continued(context: RequestContext): Promise<BoundRun | null> {
    return context.run ?? (await this.run?.(this.asking(context))) ?? null;
  }

  private async listTools(context: RequestContext): Promise<JsonObject> {
    const { gateway } = this;
    const principal = this.asking(context);
    const run = (await this.continued(context)) ?? gateway.runs.fresh(principal);
    const holders = await gateway.listedTo((upstream) => this.holder(upstream, context));
    const tasks = this.takesTasks || this.declaresTasks(context);
    const routes = await gateway.offered(run, principal, holders, { tasks });

    const { listing } = gateway;
    const shown = routes.map((route) => listing.shown(route));
    return { tools: [...(this.takesTasks ? shown.map(takingTasks) : shown), ...listing.own(AGENT_TOOLS)] };
  }

  /** Fast path for tool calls, which a transport passes here without the SDK. */
  async callDirectly(params: JsonObject, request: DirectRequest): Promise<JsonObject> {
    try {
      return await this.callTool(params, directContext(this.server, params, request));
    } catch (error) {
      throw asProtocolError(error, this.gateway.app.log);
    }
  }

  private async callTool(params: JsonObject, context: RequestContext): Promise<JsonObject> {
    if (!isToolCallParams(params)) throw invalidParams("tools/call: name is required");
    const given = params["arguments"] ?? {};
    if (!isJsonObject(given)) throw invalidParams("tools/call: arguments must be an object");
    const asTask = asksForTask(params);
    if (asTask && !this.takesTasks)
      throw invalidParams("tools/call: tasks are not available here; send it without task");
    const { gateway } = this;
    const { listing } = gateway;
    const tool = listing.dotted(params.name);
    if (isOwnTool(tool) && asTask) throw methodNotFound("tools/call", ` as a task for ${tool}`);
    if (isOwnTool(tool)) return this.callOwn(tool, listing.apart(given, undefined).args, context);
    await gateway.settle();
    if (!gateway.routes().has(tool)) await gateway.lookAgain((one) => this.holder(one, context));
    const route = gateway.routes().get(tool);
    if (!asTask && route !== undefined && requiresTask(route.definition) && this.takesTasks)
      throw methodNotFound("tools/call", ` for ${tool} except as a task`);
    const asked = { tool, route, ...listing.apart(given, route) };
    const consent = await this.consent(asked, asTask, context);
    if (consent !== null) return consent;
    return this.callGoverned(asked, asTask, withoutConsentAnswer(context));
  }

  /** The answer to a call that lacks consent at its upstream. Null if it lacks none. */
  private consent(asked: GatewayCall, asTask: boolean, context: RequestContext): Promise<JsonObject | null> {
    return consentBefore(this.gateway, this.server, {
      asked,
      asTask,
      context,
      principal: this.asking(context),
      holder: (upstream) => this.holder(upstream, context),
      make: (apart) => this.callGoverned(asked, false, apart),
    });
  }

  private async callGoverned(given: GatewayCall, asTask: boolean, context: RequestContext) {
    const { gateway } = this;
    const { tool } = given;
    // The consent may have made the route known.
    const route = given.route ?? gateway.routes().get(tool);
    const asked = { ...given, route };
    const brought = context.retried?.["requestState"];
    if (isOurState(brought)) return this.project(await this.waits.resume(asked, brought, context), route);
    const run = await this.runOf(asked, context);
    // Unknown tools also get a decision, so that the attempt is recorded.
    if (route === undefined && (run.mode === "observe" || gateway.isDeclared(tool))) throw unknownTool(tool);
    if (asTask) return this.waits.callAsTask(run, asked, context);
    return this.project(await this.waits.call(run, asked, context), route);
  }

  /** Whether this session's client knows tasks as revision 2025-11-25 defines them. */
  private get takesTasks(): boolean {
    return this.server.getCapabilities().tasks !== undefined;
  }

  /** Whether this server and the client of the newer revision both declare the tasks extension. */
  private declaresTasks({ envelope }: RequestContext): boolean {
    return (
      this.server.getCapabilities().extensions?.[TASKS_EXTENSION] !== undefined && declaresTasks(envelope)
    );
  }

  /**
   * The run of a call: the named run, else a run with an open or approved request for this call, else the run of its
   * session or principal, else a new run.
   */
  private async runOf({ tool, args }: GatewayCall, context: RequestContext): Promise<BoundRun> {
    const { runs, waiting } = this.gateway;
    const principal = this.asking(context);
    const run = (await this.continued(context)) ?? runs.fresh(principal);
    if (this.named || context.run !== null) return run;
    const other = await waiting.runFor(principal, tool, args, run.run_id);
    return other === undefined ? run : runs.named(principal, other);
  }

  private govern(run: BoundRun, asked: GatewayCall, context: RequestContext): Promise<JsonObject> {
    return this.gateway.track(this.governed(run, asked, context));
  }

  private async governed(run: BoundRun, asked: GatewayCall, context: RequestContext): Promise<JsonObject> {
    const { meta } = context;
    const { route } = asked;
    const leave = route === undefined ? () => {} : this.enter(route.upstream, context);
    const rounds = this.rounds(route?.upstream, context);
    try {
      return await governedCall(this.gateway, {
        principal: this.asking(context),
        run,
        ...asked,
        meta,
        rounds,
        envelope: this.envelope(route?.upstream, context),
        input: rounds ? context.retried : undefined,
        cancellation: context.cancellation,
        session: this,
        holder: (upstream) => this.holder(upstream, context, run),
        progress: progressOf(context),
        log: (told) => {
          if (this.wantsLog(told, context)) context.notify("notifications/message", told);
        },
      });
    } finally {
      leave();
    }
  }

  private async callOwn(name: string, args: JsonObject, context: RequestContext): Promise<JsonObject> {
    const { services } = this.gateway;
    const tool = AGENT_TOOLS.find((own) => own.name === name);
    if (tool === undefined) throw unknownTool(name);
    const { signal } = context.cancellation;
    const run = await this.continued(context);
    const call = { services, principal: this.asking(context), run, signal, progress: progressOf(context) };
    return callOwnTool(tool, { ...call, again: context.extra?.again }, args);
  }

  /**
   * Client capabilities and log level for the upstream, limited to its passthrough. Only the newer protocol version
   * sends them with each request.
   */
  private envelope(upstream: UpstreamServer | undefined, context: RequestContext): JsonObject {
    const { envelope } = context;
    if (envelope === undefined || upstream?.era !== "modern") return {};
    const level = envelope[LOG_LEVEL_META_KEY];
    const offer = this.offer(upstream, context);
    return {
      ...(isLogLevel(level) ? { [LOG_LEVEL_META_KEY]: level } : {}),
      ...(Object.keys(offer).length === 0 ? {} : { [CLIENT_CAPABILITIES_META_KEY]: offer as JsonObject }),
    };
  }

  private offer(upstream: UpstreamServer | undefined, { envelope }: RequestContext) {
    return allowedCapabilities(
      upstream?.spec.passthrough ?? [],
      envelope?.[CLIENT_CAPABILITIES_META_KEY] as never,
    );
  }

  /** Whether the upstream can ask the client for input in its answers, and receive the client's input. */
  private rounds(upstream: UpstreamServer | undefined, context: RequestContext): boolean {
    if (this.era !== "modern" || upstream?.era !== "modern") return false;
    return Object.keys(this.offer(upstream, context)).length > 0;
  }

  /** Adapts structured content for older revisions, which allow only objects. The SDK wraps all other values. */
  private project(result: JsonObject, route: ToolRoute | undefined): JsonObject {
    const structured = result["structuredContent"];
    if (this.era === "modern" || structured === undefined || isJsonObject(structured)) return result;
    const schema = route?.definition["outputSchema"];
    return this.server.projectCallToolResult(result as never, schema as never) as JsonObject;
  }

  private enter(upstream: UpstreamServer, context: RequestContext): () => void {
    const calls = this.calls.get(upstream) ?? [];
    this.calls.set(upstream, calls);
    calls.push(context);
    return () => void calls.splice(calls.indexOf(context), 1);
  }

  /** Passes an upstream's request to the client, on the stream of the call that probably caused it. */
  private ask(
    upstream: UpstreamServer,
    method: string,
    params: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const options = { signal, timeout: ASK_MS };
    const call = this.calls.get(upstream)?.at(-1);
    if (call !== undefined) return call.ask(method, params, options);
    const request = params === undefined ? { method } : { method, params };
    return this.server.request(request, ANY_RESULT, options) as Promise<JsonObject>;
  }

  private fromOwnLink(upstream: UpstreamServer, method: string, params: JsonObject): void {
    // The primary connection already reports changed lists. Only tools can differ on this connection.
    if (method.endsWith("/list_changed") && method !== TOOLS_CHANGED) return;
    const call = this.calls.get(upstream)?.at(-1);
    if (method === "notifications/message" && !this.wantsLog(params, call)) return;
    if (call !== undefined) call.notify(method, params);
    else void this.server.notification({ method, params }).catch(() => {});
  }

  /** Whether a message from this owner's connection is for this session. */
  hears(holder: string | null): boolean {
    return holder === null || this.holderKeys.has(holder);
  }

  /** Sends a notification that belongs to no call: a changed list, an updated resource, or a log line. */
  tell(method: string, params?: JsonObject): void {
    if (method === "notifications/message" && !this.wantsLog(params ?? {}, undefined)) return;
    void this.server.notification(params === undefined ? { method } : { method, params }).catch(() => {});
  }

  private async setLevel(params: JsonObject): Promise<JsonObject> {
    const { level } = params;
    if (!isLogLevel(level)) throw invalidParams("logging/setLevel: unknown level");
    this.level = level;
    this.gateway.notices.wantLogLevel(level, this.gateway.upstreams);
    return {};
  }

  private wantsLog(message: JsonObject, context: RequestContext | undefined): boolean {
    const wanted = this.era === "modern" ? context?.envelope?.[LOG_LEVEL_META_KEY] : this.level;
    // A newer client without a level wants no logs. An older client without a level gets all that the server sends.
    if (wanted === undefined || wanted === null) return this.era === "legacy";
    return meetsLevel(message["level"], wanted as McpLogLevel);
  }

  close(): void {
    this.gateway.sessions.forget(this.links);
    this.links.close();
    this.gateway.subscriptions.drop(this);
  }
}
