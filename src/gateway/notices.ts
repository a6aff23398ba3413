/** What upstreams say unasked, and to which sessions it goes. */
import type { JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Flights } from "./flights.ts";
import { type McpLogLevel, milder } from "./log-level.ts";
import type { Subscriber, Subscriptions } from "./subscriptions.ts";
import type { Link } from "./upstream/link.ts";
import type { Upstream } from "./upstream/upstream.ts";

/** Tells clients that have no session of changes; the HTTP surface has one. */
type Broadcast = (method: string, params: JsonObject | undefined) => void;

export class Notices {
  private readonly flights: Flights;
  private readonly subscriptions: Subscriptions;
  private readonly listeners = new Set<Subscriber>();
  private broadcast: Broadcast = () => {};
  private level: McpLogLevel | null = null;

  constructor(flights: Flights, subscriptions: Subscriptions) {
    this.flights = flights;
    this.subscriptions = subscriptions;
  }

  join(listener: Subscriber): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onBroadcast(broadcast: Broadcast): void {
    this.broadcast = broadcast;
  }

  tellAll(method: string): void {
    for (const listener of this.listeners) listener.tell(method);
    this.broadcast(method, undefined);
  }

  /** `holder`: over whose connection it came. */
  heard(upstream: Upstream, method: string, params: JsonObject, holder: string | null): void {
    if (method === "notifications/message") {
      this.logged(upstream, params, holder);
      return;
    }
    if (method === "notifications/resources/updated") {
      if (!upstream.spec.passthrough.includes("resources")) return;
      this.subscriptions.updated(params, holder);
      this.broadcast(method, params);
      return;
    }
    const feature = /^notifications\/(prompts|resources)\/list_changed$/.exec(method)?.[1] as
      | "prompts"
      | undefined;
    if (feature !== undefined && upstream.spec.passthrough.includes(feature)) this.tellAll(method);
  }

  private logged(upstream: Upstream, params: JsonObject, holder: string | null): void {
    const flight = this.flights.only(upstream, holder);
    if (flight !== null) flight.log(params);
    // A line that no call explains can only be for the one session there is.
    else if (this.listeners.size === 1)
      for (const only of this.listeners) if (only.hears(holder)) only.tell("notifications/message", params);
  }

  /** Upstreams are asked for the mildest level that any session wants. */
  wantLogLevel(level: McpLogLevel, upstreams: readonly Upstream[]): void {
    this.level = this.level === null ? level : milder(this.level, level);
    for (const upstream of upstreams) for (const link of upstream.links) this.askForLogs(link);
  }

  askForLogs(link: Link): void {
    if (this.level === null || link.era !== "legacy" || link.capabilities.logging === undefined) return;
    const timeout_ms = LIMITS.upstream_timeout_ms;
    link.request("logging/setLevel", { level: this.level }, { timeout_ms }).catch(() => {});
  }
}
