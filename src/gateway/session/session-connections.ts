/**
 * Chooses the connection for a session's requests. An upstream that can ask the client (sampling, elicitation, roots)
 * must reach the right client, so each session of an older revision gets its own connection to that upstream. For other
 * upstreams the `isolation` setting decides.
 */
import type { ClientCapabilities } from "@modelcontextprotocol/client";
import { isPersonal, type UpstreamSpec } from "../../config/sections/gateway.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import type { ConnectionOwner } from "../upstream/connection-pool.ts";
import { NotSentError } from "../upstream/failure.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import { methodNotFound } from "./mcp-server.ts";

const ASKING = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
} as const;
type Asking = keyof typeof ASKING;

interface LinkOwner {
  /** The client's declared capabilities. Undefined before the client declared them. */
  clientCapabilities(): ClientCapabilities | undefined;
  ask(
    upstream: UpstreamServer,
    method: Asking,
    params: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<JsonObject>;
  notification(upstream: UpstreamServer, method: string, params: JsonObject): void;
}

/** Capability members that the protocol defines. Other members are the client's own text and are not forwarded. */
const PARTS = {
  sampling: ["context", "tools"],
  elicitation: ["form", "url"],
  roots: ["listChanged"],
} as const;

/** The client capabilities that the upstream is allowed to use. */
export function allowedCapabilities(
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

/** Owner of the connection for a principal's requests. Undefined if all principals share one. */
export function principalOwner(
  { spec }: UpstreamServer,
  { id, tenant }: Pick<CallerPrincipal, "id"> & Partial<Pick<CallerPrincipal, "tenant">>,
): ConnectionOwner | undefined {
  if (spec.isolation === "shared") return undefined;
  return { key: `principal ${id}`, principal: id, tenant };
}

let sessions = 0;

export class SessionConnections {
  private readonly owner: LinkOwner;
  private readonly key = `session ${++sessions}`;
  private readonly held = new Map<UpstreamServer, ConnectionOwner>();

  constructor(owner: LinkOwner) {
    this.owner = owner;
  }

  /** Undefined if the shared connection is enough. `alone` means that only one principal can ever send requests. */
  to(upstream: UpstreamServer, principal: CallerPrincipal, alone: boolean): ConnectionOwner | undefined {
    const known = this.held.get(upstream);
    if (known !== undefined) return known;
    const isApart = upstream.spec.isolation === "session" && !alone;
    const own = this.asking(upstream) ?? (isApart ? { key: this.key } : null);
    if (own === null)
      return alone && !isPersonal(upstream.spec) ? undefined : principalOwner(upstream, principal);
    const { id, tenant } = principal;
    const owner = { ...own, principal: id, tenant };
    this.held.set(upstream, owner);
    return owner;
  }

  /** Whether the session has a separate connection to the upstream. */
  holds(upstream: UpstreamServer): boolean {
    return this.held.has(upstream);
  }

  /** The session's separate connection to the upstream, if it is open. */
  openTo(upstream: UpstreamServer): ConnectionOwner | undefined {
    const holder = this.held.get(upstream);
    return holder !== undefined && upstream.isHeld(holder.key) ? holder : undefined;
  }

  private asking(upstream: UpstreamServer): ConnectionOwner | null {
    const { owner } = this;
    const offer = allowedCapabilities(upstream.spec.passthrough, owner.clientCapabilities());
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

  /** Notifies every upstream that this session has a separate connection to. */
  notify(method: string): void {
    for (const [upstream, holder] of this.held) void upstream.tell(holder, method);
  }

  close(): void {
    for (const [upstream, { key }] of this.held) void upstream.release(key);
    this.held.clear();
  }
}

/** Session connections that the calls of a run used. An undo must use them to find the changes. */
export class RunConnections {
  private readonly byRun = new Map<string, Set<SessionConnections>>();
  private readonly runs = new Map<SessionConnections, Set<string>>();

  note(run_id: string, links: SessionConnections): void {
    entry(this.byRun, run_id).add(links);
    entry(this.runs, links).add(run_id);
  }

  /**
   * The open connection of the run. Undefined if none is open. Throws if several are, because the call's is then
   * unknown.
   */
  holder(run_id: string, upstream: UpstreamServer): ConnectionOwner | undefined {
    const open = [...(this.byRun.get(run_id) ?? [])].flatMap((links) => links.openTo(upstream) ?? []);
    if (open.length > 1)
      throw new NotSentError(
        `${open.length} sessions of this run have separate connections to it; end all but the one to undo, then roll back again`,
      );
    return open[0];
  }

  forget(links: SessionConnections): void {
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
