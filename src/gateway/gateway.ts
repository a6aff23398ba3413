/**
 * The gateway: upstreams on one side, sessions on the other, the engine in between. This file puts the
 * parts together and keeps what all sessions share.
 */
import type { App, Connector } from "../app/app.ts";
import { atMost } from "../kernel/deadline.ts";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { mayRequest, type Principal } from "../model/roles.ts";
import type { Governing } from "./call.ts";
import { buildCatalog, type Catalog, NO_CATALOG, type Route } from "./catalog.ts";
import { Flights } from "./flights.ts";
import { Listing } from "./listing.ts";
import { Notices } from "./notices.ts";
import { RunSessions } from "./own-links.ts";
import { Passthrough } from "./passthrough.ts";
import { Pins } from "./pins.ts";
import { undoThroughUpstreams } from "./rollback.ts";
import { type BoundRun, Runs } from "./runs.ts";
import { Subscriptions } from "./subscriptions.ts";
import { Tasks } from "./tasks.ts";
import type { NamedCall, SpokenCall, ToolServices } from "./tools/own-tool.ts";
import type { Link } from "./upstream/link.ts";
import type { Holder } from "./upstream/pool.ts";
import { demandsTask } from "./upstream/task-call.ts";
import { Upstream } from "./upstream/upstream.ts";
import { WaitingCalls } from "./waiting-calls.ts";

export interface GatewayOptions {
  /** How long starting waits for upstreams that are slow to come; they may come later. */
  patience_ms?: number;
}

/**
 * How long a start, and a list of tools after it, waits for all upstreams: one that hangs must hold up neither
 * clients nor the others.
 */
const START_MS = 3_000;
/** How long a list of tools waits while no upstream is there at all. */
const PATIENCE_MS = 15_000;
const MAX_INSTRUCTIONS = 20_000;
const SWEEP_MS = 5_000;

/** Over whose connection each upstream is asked. */
type Holders = Map<Upstream, Holder | undefined>;
const RULES_LOOK_MS = 1_000;

export class Gateway implements Governing {
  readonly app: App;
  readonly runs: Runs;
  readonly flights = new Flights();
  readonly waiting: WaitingCalls;
  readonly tasks: Tasks;
  readonly subscriptions = new Subscriptions();
  readonly notices = new Notices(this.flights, this.subscriptions);
  readonly sessions = new RunSessions();
  readonly upstreams: readonly Upstream[];
  readonly passthrough: Passthrough;
  readonly services: ToolServices;
  readonly listing: Listing;
  private readonly pins: Pins;
  private readonly underway = new Set<Promise<unknown>>();
  private catalog: Catalog = NO_CATALOG;
  private complained = new Set<string>();
  private started = false;
  private began_ms = 0;

  constructor(app: App) {
    this.app = app;
    this.runs = new Runs(app);
    this.waiting = new WaitingCalls(app);
    this.tasks = new Tasks(app.core.env, app.log);
    this.pins = new Pins(app.core);
    const parts = { env: app.core.env, log: app.log, send: app.egress.fetch, version: app.version };
    const hooks = {
      changed: (upstream: Upstream) => this.changed(upstream),
      notification: (upstream: Upstream, method: string, params: JsonObject, holder: string | null) =>
        this.notices.heard(upstream, method, params, holder),
      opened: (_upstream: Upstream, link: Link) => this.notices.askForLogs(link),
    };
    this.upstreams = app.settings.upstreams.map((spec) => new Upstream(spec, parts, hooks));
    this.passthrough = new Passthrough(this.upstreams);
    this.listing = new Listing(
      app.settings,
      () => this.catalog,
      () => app.core.rules().manifests.all.map(({ tool }) => tool),
    );
    this.services = { app, undo: undoThroughUpstreams(this), asMade: (calls) => this.asMade(calls) };
  }

  /** Connects to everything. Upstreams that fail are tried again; names that clash are a refusal to start. */
  async start(patience_ms = START_MS): Promise<void> {
    this.began_ms = this.app.core.env.elapsed();
    const first = Promise.all(this.upstreams.map((upstream) => upstream.start()));
    await atMost(first, patience_ms, this.app.core);
    const catalog = buildCatalog(this.upstreams);
    const problems = [...catalog.problems, ...(await this.pins.ownerless(catalog))];
    if (problems.length > 0) throw new ProblemsError(problems);
    this.started = true;
    await this.refresh();
    this.app.background.every(SWEEP_MS, "ending idle connections", async () => {
      await Promise.all(this.upstreams.map((upstream) => upstream.sweep()));
    });
    this.app.background.every(RULES_LOOK_MS, "looking for changed manifests", () => this.lookAtRules());
  }

  private rules: unknown = null;

  /** Other manifests mean other tools on offer. */
  private async lookAtRules(): Promise<void> {
    const { manifests } = this.app.core.rules();
    if (this.rules === manifests) return;
    const first = this.rules === null;
    this.rules = manifests;
    await this.settle();
    if (!first) this.notices.tellAll("notifications/tools/list_changed");
  }

  /** Makes sure that each name means the tool and the upstream that it was approved for, as of now. */
  settle(): Promise<void> {
    return this.pins.check(this.catalog);
  }

  /** What may be called under each name, once it is settled. */
  routes(): ReadonlyMap<string, Route> {
    return this.pins.routes;
  }

  private async asMade(calls: readonly NamedCall[]): Promise<SpokenCall[]> {
    await this.settle();
    return calls.map(({ tool: name, args }) => {
      const tool = this.listing.dotted(name);
      return { tool, ...this.listing.apart(args, this.routes().get(tool)) };
    });
  }

  isDeclared(tool: string): boolean {
    return this.app.core.rules().manifests.active(tool) !== undefined;
  }

  private changed(_upstream: Upstream): void {
    if (!this.started) return;
    void this.refresh().catch((error: unknown) =>
      this.app.log.warn("tool definitions could not be pinned", { error: messageOf(error) }),
    );
  }

  private async refresh(): Promise<void> {
    const before = this.routes();
    this.catalog = buildCatalog(this.upstreams);
    await this.settle();
    this.complain();
    if (!sameRoutes(before, this.routes())) this.notices.tellAll("notifications/tools/list_changed");
  }

  /** Each problem once, for as long as it lasts. */
  private complain(): void {
    const { problems, strays } = this.catalog;
    const all = [...problems, ...strays, ...this.pins.refusals];
    for (const problem of all) {
      if (!this.complained.has(problem)) this.app.log.error("a tool is not offered", { problem });
    }
    this.complained = new Set(all);
  }

  /**
   * The tools that a run may see: in observe mode all, in enforce mode those it could be allowed to call. A client
   * without tasks sees none that runs as a task alone.
   */
  async offered(
    run: BoundRun,
    principal: Principal,
    holders: Holders,
    { tasks }: { tasks: boolean },
  ): Promise<Route[]> {
    await this.settle();
    const routes = [...this.routes().values()].filter(
      ({ upstream, name, definition }) =>
        upstream.shows(name, holders.get(upstream)) && (tasks || !demandsTask(definition)),
    );
    if (run.mode !== "enforce") return routes;
    const { manifests } = this.app.core.rules();
    return routes.filter((route) => {
      const manifest = manifests.active(route.tool);
      if (manifest === undefined || manifest.lifecycle === "draft") return false;
      const { permission } = manifest;
      return (
        run.permissions.has(permission) &&
        mayRequest(principal, permission) &&
        this.pins.objection(route) === null
      );
    });
  }

  objections(route: Route): readonly string[] {
    const objection = this.pins.objection(route);
    return objection === null ? [] : [objection];
  }

  /** What the upstreams say of how they are to be used, in the order of the configuration. */
  instructions(): string[] {
    return this.upstreams.flatMap(({ instructions }) => {
      const text = instructions?.trim() ?? "";
      return text === "" ? [] : [text.slice(0, MAX_INSTRUCTIONS)];
    });
  }

  /** Has each upstream list its tools over the connection of whoever asks, where that may make a difference. */
  async listedTo(holder: (upstream: Upstream) => Holder | undefined): Promise<Holders> {
    await this.upstreamsUp();
    const holders: Holders = new Map(this.upstreams.map((upstream) => [upstream, holder(upstream)]));
    await Promise.all(
      [...holders].map(([upstream, one]) =>
        one?.capabilities === undefined || !upstream.ok ? undefined : upstream.readVariant(one),
      ),
    );
    return holders;
  }

  /**
   * Lists, and calls of what is not listed yet, wait a little for upstreams that are about to come, not for one that
   * hangs.
   */
  async upstreamsUp(): Promise<void> {
    const coming = this.upstreams.filter(({ isStarting }) => isStarting);
    if (coming.length === 0) return;
    const all = Promise.all(coming.map((upstream) => upstream.settled()));
    const { core } = this.app;
    const patience_ms = this.upstreams.some(({ ok }) => ok) ? START_MS : PATIENCE_MS;
    const left = this.began_ms + patience_ms - core.env.elapsed();
    if (left <= 0) return;
    await atMost(all, left, core);
    await this.refresh();
  }

  /**
   * An undo waits for tool servers that are just being started, as long as one of its tools is offered by none: a
   * server that is fetched first takes longer than a client would wait for a list.
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

  /** Keeps a call in sight until its outcome is recorded, so that stopping can wait for it. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.underway.add(work);
    try {
      return await work;
    } finally {
      this.underway.delete(work);
    }
  }

  /** Resolves when every call that is under way now has ended. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.underway]);
  }

  connectors(): Connector[] {
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

  /** Ends the connections; calls under way become uncertain, and are recorded so before this resolves. */
  async close(): Promise<void> {
    this.tasks.close();
    await Promise.all(this.upstreams.map((upstream) => upstream.close()));
    await this.idle();
  }
}

function sameRoutes(a: ReadonlyMap<string, Route>, b: ReadonlyMap<string, Route>): boolean {
  if (a.size !== b.size) return false;
  for (const [tool, route] of b) {
    const other = a.get(tool);
    if (other?.hash !== route.hash || other.upstream !== route.upstream) return false;
  }
  return true;
}
