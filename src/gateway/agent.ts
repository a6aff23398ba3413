/**
 * The agent endpoint as a server: the upstreams' tools under governance, a few read-only tools of the
 * service, and whatever else an upstream was allowed to pass. One for each session, and for each request
 * of a client that has none.
 */
import { CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, type Server } from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { type GatewayCall, isOwnTool, progressOf, unknownTool } from "./asked.ts";
import { governedCall, isToolCallParams } from "./call.ts";
import { CallWaits } from "./call-waits.ts";
import type { Route } from "./catalog.ts";
import type { Gateway } from "./gateway.ts";
import type { DirectRequest } from "./http/session-transport.ts";
import { isLogLevel, type McpLogLevel, reaches } from "./log-level.ts";
import { declaresTasks, TASKS_EXTENSION } from "./native-wait.ts";
import { OwnLinks, offered, principalHolder } from "./own-links.ts";
import { asProtocolError, createPeer, invalidParams, methodNotFound } from "./peer.ts";
import { ANY_RESULT, directContext, fromSdk, type RequestContext } from "./request-context.ts";
import { isOurState } from "./request-state.ts";
import type { BoundRun, RunOf } from "./runs.ts";
import { answerNewer, bindTasks } from "./tasks-newer.ts";
import { answerOlder, asksForTask, OLDER_TASKS, TASKS_CAPABILITY, takingTasks } from "./tasks-older.ts";
import { AGENT_TOOLS } from "./tools/agent-tools.ts";
import { callOwnTool } from "./tools/own-tool.ts";
import type { Holder } from "./upstream/pool.ts";
import { demandsTask } from "./upstream/task-call.ts";
import type { Upstream } from "./upstream/upstream.ts";

interface AgentOptions {
  /** The only one who can ask, over standard input; null where each request says who asks. */
  local: Principal | null;
  /** The run of whoever asks; null where each call has its own. */
  run: RunOf | null;
  /** Whether that run was asked for by its name. */
  named: boolean;
  era: "legacy" | "modern";
  /** The method of the one request that it is made for, where it is made for one. */
  method?: string | undefined;
}

const TOOLS_CHANGED = "notifications/tools/list_changed";
/** How long a person or a model at the other end may take to answer an upstream. */
const ASK_MS = 600_000;

export class AgentPeer {
  readonly server: Server;
  readonly era: "legacy" | "modern";
  private readonly gateway: Gateway;
  private readonly local: Principal | null;
  private readonly run: RunOf | null;
  private readonly named: boolean;
  private readonly links: OwnLinks;
  private readonly waits: CallWaits;
  private readonly calls = new Map<Upstream, RequestContext[]>();
  private readonly holderKeys = new Set<string>();
  private level: McpLogLevel | null = null;

  constructor(gateway: Gateway, { local, run, named, era, method }: AgentOptions) {
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
    this.links = new OwnLinks({
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
      if (this.era === "modern") return answerNewer(tasks, method, params, principal);
      if (this.takesTasks) return answerOlder(tasks, method, params, principal, context);
    }
    const request = {
      method,
      params,
      input: context.retried,
      cancellation: context.cancellation,
      holder: (upstream: Upstream) => this.holder(upstream, context),
      meta: (upstream: Upstream) => this.envelope(upstream, context),
      rounds: (upstream: Upstream) => this.rounds(upstream, context),
    };
    return subscriptions.around(method, params["uri"], this, () => passthrough.handle(request));
  }

  /** Authority is that of the request, not of the session it belongs to. */
  private asking({ extra }: RequestContext): Principal {
    const principal = extra?.principal ?? this.local;
    if (principal === null) throw new Error("a request came without saying who asks");
    return principal;
  }

  /** Whose connection to an upstream a request goes over. */
  private holder(upstream: Upstream, context: RequestContext, run?: BoundRun): Holder | undefined {
    const principal = this.asking(context);
    const alone = this.local !== null;
    const holder =
      this.era === "legacy"
        ? this.links.to(upstream, principal, alone)
        : alone
          ? undefined
          : principalHolder(upstream, principal.id);
    if (holder !== undefined) this.holderKeys.add(holder.key);
    if (run !== undefined && this.links.holds(upstream)) this.gateway.sessions.note(run.run_id, this.links);
    return holder;
  }

  /** The run that the request names, or else the one of its session or its principal. */
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

  /** The short way of tool calls, from a transport straight to the decision. */
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
    if (!gateway.routes().has(tool)) await gateway.upstreamsUp();
    const route = gateway.routes().get(tool);
    if (!asTask && route !== undefined && demandsTask(route.definition) && this.takesTasks)
      throw methodNotFound("tools/call", ` for ${tool} but as a task`);
    const asked = { tool, route, ...listing.apart(given, route) };
    const brought = context.retried?.["requestState"];
    if (isOurState(brought)) return this.project(await this.waits.resume(asked, brought, context), route);
    const run = await this.runOf(asked, context);
    // A tool that no manifest declares and no upstream offers is decided all the same: that it was tried is recorded.
    if (route === undefined && (run.mode === "observe" || gateway.isDeclared(tool)))
      throw unknownTool(params.name);
    if (asTask) return this.waits.callAsTask(run, asked, context);
    return this.project(await this.waits.call(run, asked, context), route);
  }

  /** Whether this session's client was told that its calls may be tasks, as its revision has them. */
  private get takesTasks(): boolean {
    return this.server.getCapabilities().tasks !== undefined;
  }

  /** Whether the client of the newer revision, and we, have its extension. */
  private declaresTasks({ envelope }: RequestContext): boolean {
    return (
      this.server.getCapabilities().extensions?.[TASKS_EXTENSION] !== undefined && declaresTasks(envelope)
    );
  }

  /** The run of a call: named, or of a request for this very call that still stands, or its session's or its own. */
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

  /** In the newer era each request says what its client can do and wants to hear; what may pass, passes. */
  private envelope(upstream: Upstream | undefined, context: RequestContext): JsonObject {
    const { envelope } = context;
    if (envelope === undefined || upstream?.current?.era !== "modern") return {};
    const level = envelope[LOG_LEVEL_META_KEY];
    const offer = this.offer(upstream, context);
    return {
      ...(isLogLevel(level) ? { [LOG_LEVEL_META_KEY]: level } : {}),
      ...(Object.keys(offer).length === 0 ? {} : { [CLIENT_CAPABILITIES_META_KEY]: offer as JsonObject }),
    };
  }

  private offer(upstream: Upstream | undefined, { envelope }: RequestContext) {
    return offered(upstream?.spec.passthrough ?? [], envelope?.[CLIENT_CAPABILITIES_META_KEY] as never);
  }

  /** Whether the upstream may ask the client within its answers, and so gets what the client says to that. */
  private rounds(upstream: Upstream | undefined, context: RequestContext): boolean {
    if (this.era !== "modern" || upstream?.current?.era !== "modern") return false;
    return Object.keys(this.offer(upstream, context)).length > 0;
  }

  /** Older revisions know only objects as structured content; the SDK wraps anything else for them. */
  private project(result: JsonObject, route: Route | undefined): JsonObject {
    const structured = result["structuredContent"];
    if (this.era === "modern" || structured === undefined || isJsonObject(structured)) return result;
    const schema = route?.definition["outputSchema"];
    return this.server.projectCallToolResult(result as never, schema as never) as JsonObject;
  }

  private enter(upstream: Upstream, context: RequestContext): () => void {
    const calls = this.calls.get(upstream) ?? [];
    this.calls.set(upstream, calls);
    calls.push(context);
    return () => void calls.splice(calls.indexOf(context), 1);
  }

  /** Passes an upstream's question to the client, on the stream of the call that it most likely belongs to. */
  private ask(
    upstream: Upstream,
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

  private fromOwnLink(upstream: Upstream, method: string, params: JsonObject): void {
    // The first connection tells of changed lists, but for tools, which may be others over this one.
    if (method.endsWith("/list_changed") && method !== TOOLS_CHANGED) return;
    const call = this.calls.get(upstream)?.at(-1);
    if (method === "notifications/message" && !this.wantsLog(params, call)) return;
    if (call !== undefined) call.notify(method, params);
    else void this.server.notification({ method, params }).catch(() => {});
  }

  /** Whether what came over that connection is for this session. */
  hears(holder: string | null): boolean {
    return holder === null || this.holderKeys.has(holder);
  }

  /** Something that belongs to no call: a changed list, an updated resource, a log line of the only session. */
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
    // In the newer era a client that names no level wants none; before, it gets what the server sends.
    if (wanted === undefined || wanted === null) return this.era === "legacy";
    return reaches(message["level"], wanted as McpLogLevel);
  }

  close(): void {
    this.gateway.sessions.forget(this.links);
    this.links.close();
    this.gateway.subscriptions.drop(this);
  }
}
