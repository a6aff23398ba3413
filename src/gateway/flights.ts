/**
 * Which calls an upstream is working on, and for whom. Log messages on a shared connection do not say
 * whose call they belong to: they are passed on only while everything under way belongs to one session,
 * because a guess would show one client another's data.
 */
import type { JsonObject } from "../kernel/json.ts";
import type { Upstream } from "./upstream/upstream.ts";

interface Flight {
  /** Whoever it is for; compared by identity. */
  session: object;
  /** Whose connection it goes over; null where it is shared. */
  holder: string | null;
  log(params: JsonObject): void;
}

export class Flights {
  private readonly underway = new Map<Upstream, Set<Flight>>();

  begin(upstream: Upstream, flight: Flight): () => void {
    let flights = this.underway.get(upstream);
    if (flights === undefined) {
      flights = new Set();
      this.underway.set(upstream, flights);
    }
    flights.add(flight);
    return () => flights.delete(flight);
  }

  /** The newest call over that connection of the only session that has any; null where none or several have. */
  only(upstream: Upstream, holder: string | null): Flight | null {
    let newest: Flight | null = null;
    for (const flight of this.underway.get(upstream) ?? []) {
      if (holder !== null && flight.holder !== null && flight.holder !== holder) continue;
      if (newest !== null && newest.session !== flight.session) return null;
      newest = flight;
    }
    return newest;
  }
}
