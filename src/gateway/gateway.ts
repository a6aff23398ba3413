/**
 * The gateway connects agent sessions to upstreams, with the engine in between. This file wires its components and owns
 * the state that all sessions share.
 */
import type { ApproversGuard } from "../auth/approvers-guard.ts";
import { isPersonal, needsConsent, type UpstreamSpec } from "../config/sections/gateway.ts";
import { type CallerPrincipal, canRequestPermission } from "../govern/roles.ts";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json/json.ts";
import { settleWithin } from "../kernel/timeout.ts";
import type { ConnectorStatus, ServiceApp } from "../operations/app.ts";
import { openApproversGuard } from "../operations/signing/approvers-guard.ts";
import type { GovernedCallDeps } from "./call/governed-call.ts";
import { InFlightCalls } from "./call/in-flight-calls.ts";
import { MethodPassthrough } from "./call/passthrough.ts";
import { textResult } from "./call/result.ts";
import { undoThroughUpstreams } from "./call/rollback.ts";
import { buildCatalog, NO_CATALOG, type ToolCatalog, type ToolRoute } from "./catalog/catalog.ts";
import { ToolPins } from "./catalog/pins.ts";
import { ToolListing } from "./catalog/tool-listing.ts";
import { NotificationHub } from "./session/notifications.ts";
import { type BoundRun, GatewayRuns } from "./session/runs.ts";
import { RunConnections } from "./session/session-connections.ts";
import { ResourceSubscriptions } from "./session/subscriptions.ts";
import type { CallWithReason, NamedCall, ToolServices } from "./tools/own-tool.ts";
import { UpstreamTokens } from "./upstream/authorized-sender.ts";
import type { UpstreamConnection } from "./upstream/connection.ts";
import type { ConnectionOwner } from "./upstream/connection-pool.ts";
import { failureOf } from "./upstream/failure.ts";
import { requiresTask } from "./upstream/task-call.ts";
import { UpstreamServer } from "./upstream/upstream.ts";
import { PendingCalls } from "./wait/pending-calls.ts";
import { TaskRegistry } from "./wait/tasks.ts";

export interface GatewayOptions {
  /** How long startup waits for slow upstreams. Later ones can still connect. */
  patience_ms?: number;
}

/**
 * How long startup, or a tool list shortly after it, waits for all upstreams. One upstream that hangs must not delay
 * clients or the other upstreams.
 */
const START_MS = 3_000;
/** How long a tool list waits while no upstream is connected. */
const PATIENCE_MS = 15_000;
const MAX_INSTRUCTIONS = 20_000;
const SWEEP_MS = 5_000;

/** Connection owner for each upstream. */
type Holders = Map<UpstreamServer, ConnectionOwner | undefined>;
const RULES_LOOK_MS = 1_000;

export class McpGateway implements GovernedCallDeps {
  readonly app: ServiceApp;
  readonly runs: GatewayRuns;
  readonly flights = new InFlightCalls();
  readonly waiting: PendingCalls;
  readonly tasks: TaskRegistry;
  readonly subscriptions = new ResourceSubscriptions();
  readonly notices = new NotificationHub(this.flights, this.subscriptions);
  readonly sessions = new RunConnections();
  readonly upstreams: readonly UpstreamServer[];
  readonly passthrough: MethodPassthrough;
  readonly services: ToolServices;
  readonly listing: ToolListing;
  /** Tokens of upstreams that people connect. */
  readonly tokens: UpstreamTokens;
  /** Verifies signed approvals; null without an approvers file. */
  guard: ApproversGuard | null = null;
  private readonly pins: ToolPins;
  private readonly underway = new Set<Promise<unknown>>();
  private catalog: ToolCatalog = NO_CATALOG;
  private complained = new Set<string>();
  private started = false;
  private began_ms = 0;

  constructor(app: ServiceApp) {
    this.app = app;
    this.runs = new GatewayRuns(app);
    this.waiting = new PendingCalls(app);
    this.tasks = new TaskRegistry(app.core.env, app.log);
    this.pins = new ToolPins(app.core);
    this.tokens = new UpstreamTokens(app);
    const parts = {
      env: app.core.env,
      log: app.log,
      send: app.egress.fetch,
      version: app.version,
      authorize: (spec: UpstreamSpec, principal: string | null) => this.tokens.sender(spec, principal),
    };
    const hooks = {
      changed: (upstream: UpstreamServer) => this.changed(upstream),
      notification: (upstream: UpstreamServer, method: string, params: JsonObject, holder: string | null) =>
        this.notices.heard(upstream, method, params, holder),
      opened: (_upstream: UpstreamServer, link: UpstreamConnection) => this.notices.askForLogs(link),
    };
    this.upstreams = app.settings.upstreams.map((spec) => new UpstreamServer(spec, parts, hooks));
    this.passthrough = new MethodPassthrough(this.upstreams);
    this.listing = new ToolListing(
      app.settings,
      () => this.catalog,
      () => app.core.rules().manifests.all.map(({ tool }) => tool),
    );
    this.services = { app, undo: undoThroughUpstreams(this), asMade: (calls) => this.asMade(calls) };
  }

  /** Connects to all upstreams. Failed ones are retried later. Clashing tool names prevent the start. */
  async start(patience_ms = START_MS): Promise<void> {
    this.guard = await openApproversGuard(this.app);
    this.began_ms = this.app.core.env.elapsed();
    const first = Promise.all(this.upstreams.map((upstream) => upstream.start()));
    await settleWithin(first, patience_ms, this.app.core);
    const catalog = buildCatalog(this.upstreams);
    const problems = [...catalog.problems, ...(await this.pins.ownerless(catalog))];
    if (problems.length > 0) throw new ProblemsError(problems);
    this.started = true;
    await this.refresh();
    this.app.background.every(SWEEP_MS, "ending idle connections", async () => {
      await Promise.all(this.upstreams.map((upstream) => upstream.sweep()));
    });
    if (this.upstreams.some(({ spec }) => needsConsent(spec) && !isPersonal(spec)))
      this.app.background.every(RULES_LOOK_MS, "connecting upstreams", () => this.connectConsented());
    this.app.background.every(RULES_LOOK_MS, "checking for changed manifests", () => this.lookAtRules());
  }

  /** Connects the service's own upstreams as soon as an admin has consented. */
  private async connectConsented(): Promise<void> {
    for (const upstream of this.upstreams) {
      const { spec } = upstream;
      if (!needsConsent(spec) || isPersonal(spec) || upstream.ok || upstream.isStarting) continue;
      if (await this.tokens.isReady(spec, null)) upstream.retry();
    }
  }

  private rules: unknown = null;

  /** Announces a changed tool list after the manifests changed. */
  private async lookAtRules(): Promise<void> {
    const { manifests } = this.app.core.rules();
    if (this.rules === manifests) return;
    const first = this.rules === null;
    this.rules = manifests;
    await this.settle();
    if (!first) this.notices.tellAll("notifications/tools/list_changed");
  }

  /** Updates the pins, so that each name maps to the tool and upstream that were approved for it. */
  settle(): Promise<void> {
    return this.pins.check(this.catalog);
  }

  /** Callable tools by name. Call `settle` first. */
  routes(): ReadonlyMap<string, ToolRoute> {
    return this.pins.routes;
  }

  private async asMade(calls: readonly NamedCall[]): Promise<CallWithReason[]> {
    await this.settle();
    return calls.map(({ tool: name, args }) => {
      const tool = this.listing.dotted(name);
      return { tool, ...this.listing.apart(args, this.routes().get(tool)) };
    });
  }

  /**
   * The upstream that a tool without a route can belong to, because no connected principal has listed its tools yet.
   * Undefined unless exactly one can offer it.
   */
  unlistedUpstream(tool: string): UpstreamServer | undefined {
    const personal = this.upstreams.filter(({ spec, isListed }) => isPersonal(spec) && !isListed);
    const named = personal.filter(({ spec }) => spec.namespace && tool.startsWith(`${spec.name}.`));
    if (named.length === 1) return named[0];
    const plain = personal.filter(({ spec }) => !spec.namespace);
    return plain.length === 1 && this.isDeclared(tool) ? plain[0] : undefined;
  }

  /** Lists the tools again, because a tool has no route yet. */
  async lookAgain(holder: (upstream: UpstreamServer) => ConnectionOwner | undefined): Promise<void> {
    if (!this.upstreams.some(({ spec }) => isPersonal(spec))) return this.upstreamsUp();
    await this.listedTo(holder);
    await this.settle();
  }

  /** Lists a connected principal's tools. The answer to a call if they cannot be listed, or null. */
  async unlistable(
    upstream: UpstreamServer,
    holder: ConnectionOwner | undefined,
  ): Promise<JsonObject | null> {
    if (holder === undefined || upstream.hasListed(holder)) return null;
    try {
      await upstream.listFor(holder);
      await this.refresh();
      return null;
    } catch (error) {
      const why = upstream.hide(failureOf(error).message);
      const { structuredContent: _, ...answer } = textResult(
        `nothing was called: upstream ${upstream.name}: ${why}`,
        {},
        true,
      );
      return answer;
    }
  }

  isDeclared(tool: string): boolean {
    return this.app.core.rules().manifests.active(tool) !== undefined;
  }

  private changed(_upstream: UpstreamServer): void {
    if (!this.started) return;
    void this.refresh().catch((error: unknown) =>
      this.app.log.warn("tool definitions could not be pinned", { error: messageOf(error) }),
    );
  }

  /** Offers the tools that the upstreams list now. */
  async refresh(): Promise<void> {
    const before = this.routes();
    this.catalog = buildCatalog(this.upstreams);
    await this.settle();
    this.complain();
    if (!sameRoutes(before, this.routes())) this.notices.tellAll("notifications/tools/list_changed");
  }

  /** Logs each problem once for as long as it lasts. */
  private complain(): void {
    const { problems, strays } = this.catalog;
    const all = [...problems, ...strays, ...this.pins.refusals];
    for (const problem of all) {
      if (!this.complained.has(problem)) this.app.log.error("a tool is not offered", { problem });
    }
    this.complained = new Set(all);
  }

  /**
   * The tools that a run can see: all in observe mode, and those that it could be allowed to call in enforce mode.
   * Clients without tasks do not see tools that run only as tasks.
   */
  async offered(
    run: BoundRun,
    principal: CallerPrincipal,
    holders: Holders,
    { tasks }: { tasks: boolean },
  ): Promise<ToolRoute[]> {
    await this.settle();
    const routes = [...this.routes().values()].filter(
      ({ upstream, name, definition }) =>
        upstream.shows(name, holders.get(upstream)) && (tasks || !requiresTask(definition)),
    );
    if (run.mode !== "enforce") return routes;
    const { manifests } = this.app.core.rules();
    return routes.filter((route) => {
      const manifest = manifests.active(route.tool);
      if (manifest === undefined || manifest.lifecycle === "draft") return false;
      const { permission } = manifest;
      return (
        run.permissions.has(permission) &&
        canRequestPermission(principal, permission) &&
        this.pins.objection(route) === null
      );
    });
  }

  objections(route: ToolRoute): readonly string[] {
    const objection = this.pins.objection(route);
    return objection === null ? [] : [objection];
  }

  /** Usage instructions of the upstreams, in configuration order. */
  instructions(): string[] {
    return this.upstreams.flatMap(({ instructions }) => {
      const text = instructions?.trim() ?? "";
      return text === "" ? [] : [text.slice(0, MAX_INSTRUCTIONS)];
    });
  }

  /** Lists each upstream's tools over the caller's own connection, if the list can differ there. */
  async listedTo(holder: (upstream: UpstreamServer) => ConnectionOwner | undefined): Promise<Holders> {
    await this.upstreamsUp();
    const holders: Holders = new Map(this.upstreams.map((upstream) => [upstream, holder(upstream)]));
    await Promise.all(
      [...holders].map(([upstream, one]) => {
        if (one === undefined || !upstream.ok) return undefined;
        if (isPersonal(upstream.spec)) return this.listPersonal(upstream, one);
        return one.capabilities === undefined ? undefined : upstream.readVariant(one);
      }),
    );
    return holders;
  }

  /** Lists the tools of a principal that is connected. An upstream that hangs does not hold up the others. */
  private async listPersonal(upstream: UpstreamServer, holder: ConnectionOwner): Promise<void> {
    if (upstream.hasListed(holder) || !(await this.tokens.isReady(upstream.spec, holder.principal ?? null)))
      return;
    await settleWithin(upstream.readVariant(holder), START_MS, this.app.core);
  }

  /**
   * Waits briefly for upstreams that are starting, before tools are listed or an unlisted tool is called. An upstream
   * that hangs does not block for longer.
   */
  async upstreamsUp(): Promise<void> {
    const coming = this.upstreams.filter(({ isStarting }) => isStarting);
    if (coming.length === 0) return;
    const all = Promise.all(coming.map((upstream) => upstream.settled()));
    const { core } = this.app;
    const patience_ms = this.upstreams.some(({ ok }) => ok) ? START_MS : PATIENCE_MS;
    const left = this.began_ms + patience_ms - core.env.elapsed();
    if (left <= 0) return;
    await settleWithin(all, left, core);
    await this.refresh();
  }

  /**
   * Waits for starting tool servers until the tools of an undo are offered. There is no short limit here, because a
   * server that must first be downloaded takes longer than a client waits for a list.
   */
  async reached(tools: readonly string[]): Promise<void> {
    await this.settle();
    for (;;) {
      const coming = this.upstreams.filter(({ isStarting }) => isStarting);
      if (coming.length === 0 || tools.every((tool) => this.routes().has(tool))) return;
      await Promise.race(coming.map((upstream) => upstream.settled()));
      await this.refresh();
    }
  }

  /** Tracks a call until its outcome is recorded, so that shutdown can wait for it. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.underway.add(work);
    try {
      return await work;
    } finally {
      this.underway.delete(work);
    }
  }

  /** Resolves after every call that is in progress now has ended. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.underway]);
  }

  connectors(): ConnectorStatus[] {
    return this.upstreams.map(({ name, transport, ok, tools }) => ({
      name,
      transport,
      ok,
      tools: tools.length,
    }));
  }

  readiness(): { problems: string[]; facts: Record<string, unknown> } {
    const upstreams = this.upstreams.map(({ name, ok }) => ({ name, ok }));
    const working = upstreams.some(({ ok }) => ok);
    const why = this.upstreams.map(({ name, problem }) => `${name}: ${problem ?? "ok"}`).join("; ");
    return {
      problems: working ? [] : [`no upstream is working (${why || "none is configured"})`],
      facts: { upstreams },
    };
  }

  /** Closes the connections. Calls in progress become uncertain and are recorded before this resolves. */
  async close(): Promise<void> {
    this.tasks.close();
    await Promise.all(this.upstreams.map((upstream) => upstream.close()));
    await this.idle();
  }
}

function sameRoutes(a: ReadonlyMap<string, ToolRoute>, b: ReadonlyMap<string, ToolRoute>): boolean {
  if (a.size !== b.size) return false;
  for (const [tool, route] of b) {
    const other = a.get(tool);
    if (other?.hash !== route.hash || other.upstream !== route.upstream) return false;
  }
  return true;
}
