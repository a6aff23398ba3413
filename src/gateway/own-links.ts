/**
 * Whose connection a session's requests go over. An upstream that may ask something of the client (sampling,
 * elicitation, roots) must know which client, so each session of an older revision has a connection to it that
 * it shares with no other; elsewhere the upstream's `isolation` says.
 */
import type { ClientCapabilities } from "@modelcontextprotocol/client";
import type { UpstreamSpec } from "../config/sections/gateway.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { methodNotFound } from "./peer.ts";
import { NotSent } from "./upstream/failure.ts";
import type { Holder } from "./upstream/pool.ts";
import type { Upstream } from "./upstream/upstream.ts";

const ASKING = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
} as const;
type Asking = keyof typeof ASKING;

interface LinkOwner {
  /** What the client said it can do; undefined until it said so. */
  clientCapabilities(): ClientCapabilities | undefined;
  ask(
    upstream: Upstream,
    method: Asking,
    params: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<JsonObject>;
  notification(upstream: Upstream, method: string, params: JsonObject): void;
}

/** What the protocol knows of each ability. Whatever else a client declares is its own text, and goes no further. */
const PARTS = {
  sampling: ["context", "tools"],
  elicitation: ["form", "url"],
  roots: ["listChanged"],
} as const;

/** What of the client's abilities the upstream may use. */
export function offered(
  passthrough: UpstreamSpec["passthrough"],
  client: ClientCapabilities | undefined,
): ClientCapabilities {
  const offer: ClientCapabilities = {};
  for (const feature of Object.values(ASKING)) {
    const declared = client?.[feature];
    if (passthrough.includes(feature) && isJsonObject(declared)) offer[feature] = plainly(feature, declared);
  }
  return offer;
}

function plainly(feature: keyof typeof PARTS, declared: JsonObject): JsonObject {
  const parts = PARTS[feature].filter((part) => declared[part] === true || isJsonObject(declared[part]));
  return Object.fromEntries(parts.map((part) => [part, declared[part] === true ? true : {}]));
}

/** The connection that a principal's requests go over; undefined where all share one. */
export function principalHolder({ spec }: Upstream, principal: string): Holder | undefined {
  return spec.isolation === "shared" ? undefined : { key: `principal ${principal}` };
}

let sessions = 0;

export class OwnLinks {
  private readonly owner: LinkOwner;
  private readonly key = `session ${++sessions}`;
  private readonly held = new Map<Upstream, Holder>();

  constructor(owner: LinkOwner) {
    this.owner = owner;
  }

  /** Undefined where the connection that all share will do. `alone` where only one principal can ever ask. */
  to(upstream: Upstream, principal: Principal, alone: boolean): Holder | undefined {
    const known = this.held.get(upstream);
    if (known !== undefined) return known;
    const own =
      this.asking(upstream) ?? (upstream.spec.isolation === "session" && !alone ? { key: this.key } : null);
    if (own === null) return alone ? undefined : principalHolder(upstream, principal.id);
    this.held.set(upstream, own);
    return own;
  }

  /** Whether the session's requests to it go over a connection of its own. */
  holds(upstream: Upstream): boolean {
    return this.held.has(upstream);
  }

  /** Its own connection to the upstream, while that is open. */
  openTo(upstream: Upstream): Holder | undefined {
    const holder = this.held.get(upstream);
    return holder !== undefined && upstream.isHeld(holder.key) ? holder : undefined;
  }

  private asking(upstream: Upstream): Holder | null {
    const { owner } = this;
    const offer = offered(upstream.spec.passthrough, owner.clientCapabilities());
    if (Object.keys(offer).length === 0) return null;
    return {
      key: this.key,
      capabilities: offer,
      notification: (method, params) => owner.notification(upstream, method, params),
      asked: (method, params, signal) => {
        const feature = Object.hasOwn(ASKING, method) ? ASKING[method as Asking] : undefined;
        if (feature === undefined || offer[feature] === undefined) throw methodNotFound(method);
        return owner.ask(upstream, method as Asking, params, signal);
      },
    };
  }

  /** Tells every upstream that has a connection of ours. */
  notify(method: string): void {
    for (const [upstream, holder] of this.held) void upstream.tell(holder, method);
  }

  close(): void {
    for (const [upstream, { key }] of this.held) void upstream.release(key);
    this.held.clear();
  }
}

/** Over which sessions' own connections the calls of a run went: an undo looks for what they changed there. */
export class RunSessions {
  private readonly byRun = new Map<string, Set<OwnLinks>>();
  private readonly runs = new Map<OwnLinks, Set<string>>();

  note(run_id: string, links: OwnLinks): void {
    entry(this.byRun, run_id).add(links);
    entry(this.runs, links).add(run_id);
  }

  /** Undefined where no connection is left; throws where it cannot be told which of several a call went over. */
  holder(run_id: string, upstream: Upstream): Holder | undefined {
    const open = [...(this.byRun.get(run_id) ?? [])].flatMap((links) => links.openTo(upstream) ?? []);
    if (open.length > 1)
      throw new NotSent(
        `${open.length} sessions of this run have connections of their own to it; end all but the one to undo, then roll back again`,
      );
    return open[0];
  }

  forget(links: OwnLinks): void {
    for (const run_id of this.runs.get(links) ?? []) {
      const sessions = this.byRun.get(run_id);
      sessions?.delete(links);
      if (sessions?.size === 0) this.byRun.delete(run_id);
    }
    this.runs.delete(links);
  }
}

function entry<K, V>(of: Map<K, Set<V>>, key: K): Set<V> {
  const known = of.get(key) ?? new Set<V>();
  of.set(key, known);
  return known;
}
