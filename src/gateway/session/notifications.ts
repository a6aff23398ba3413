/** Forwards notifications of upstreams to the sessions that they concern. */
import type { JsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { InFlightCalls } from "../call/in-flight-calls.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import { lowerLevel, type McpLogLevel } from "./log-level.ts";
import type { ResourceSubscriber, ResourceSubscriptions } from "./subscriptions.ts";

/** Notifies clients without a session. The HTTP surface provides it. */
type Broadcast = (method: string, params: JsonObject | undefined) => void;

export class NotificationHub {
  private readonly flights: InFlightCalls;
  private readonly subscriptions: ResourceSubscriptions;
  private readonly listeners = new Set<ResourceSubscriber>();
  private broadcast: Broadcast = () => {};
  private level: McpLogLevel | null = null;

  constructor(flights: InFlightCalls, subscriptions: ResourceSubscriptions) {
    this.flights = flights;
    this.subscriptions = subscriptions;
  }

  join(listener: ResourceSubscriber): () => void {
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

  /** Handles a notification. `holder` owns the connection that it came over. */
  heard(upstream: UpstreamServer, method: string, params: JsonObject, holder: string | null): void {
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

  private logged(upstream: UpstreamServer, params: JsonObject, holder: string | null): void {
    const flight = this.flights.only(upstream, holder);
    if (flight !== null) flight.log(params);
    // A log line outside any call is forwarded only if there is exactly one session.
    else if (this.listeners.size === 1)
      for (const only of this.listeners) if (only.hears(holder)) only.tell("notifications/message", params);
  }

  /** Asks all upstreams for the lowest log level that any session wants. */
  wantLogLevel(level: McpLogLevel, upstreams: readonly UpstreamServer[]): void {
    this.level = this.level === null ? level : lowerLevel(this.level, level);
    for (const upstream of upstreams) for (const link of upstream.links) this.askForLogs(link);
  }

  askForLogs(link: UpstreamConnection): void {
    if (this.level === null || link.era !== "legacy" || link.capabilities.logging === undefined) return;
    const timeout_ms = SERVICE_LIMITS.upstream_timeout_ms;
    link.request("logging/setLevel", { level: this.level }, { timeout_ms }).catch(() => {});
  }
}
