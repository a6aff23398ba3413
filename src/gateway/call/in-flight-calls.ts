/**
 * Calls in progress per upstream, and their sessions. Log messages on a shared connection do not name their call. They
 * are forwarded only if all calls in progress belong to one session, because a wrong guess would show one client
 * another client's data.
 */
import type { JsonObject } from "../../kernel/json/json.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";

interface Flight {
  /** Session of the call, compared by identity. */
  session: object;
  /** Connection of the call. Null for the shared connection. */
  holder: string | null;
  log(params: JsonObject): void;
}

export class InFlightCalls {
  private readonly underway = new Map<UpstreamServer, Set<Flight>>();

  begin(upstream: UpstreamServer, flight: Flight): () => void {
    let flights = this.underway.get(upstream);
    if (flights === undefined) {
      flights = new Set();
      this.underway.set(upstream, flights);
    }
    flights.add(flight);
    return () => flights.delete(flight);
  }

  /** The newest call on the connection, if a single session has calls there. Otherwise null. */
  only(upstream: UpstreamServer, holder: string | null): Flight | null {
    let newest: Flight | null = null;
    for (const flight of this.underway.get(upstream) ?? []) {
      if (holder !== null && flight.holder !== null && flight.holder !== holder) continue;
      if (newest !== null && newest.session !== flight.session) return null;
      newest = flight;
    }
    return newest;
  }
}
