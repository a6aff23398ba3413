/**
 * Connections of one session's own. An upstream that may ask something of the client (sampling,
 * elicitation, roots) must know which client, so each session of an older revision gets a connection
 * to it that nobody shares.
 */
import type { ClientCapabilities } from "@modelcontextprotocol/client";
import type { Upstream as UpstreamSpec } from "../config/sections/gateway.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { methodNotFound } from "./peer.ts";
import type { Link } from "./upstream/link.ts";
import type { Upstream } from "./upstream/upstream.ts";

const ASKING = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
} as const;
type Asking = keyof typeof ASKING;

export interface LinkOwner {
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

export class OwnLinks {
  private readonly owner: LinkOwner;
  private readonly links = new Map<Upstream, Promise<Link>>();
  private closed = false;

  constructor(owner: LinkOwner) {
    this.owner = owner;
  }

  /** Undefined where the shared connection will do. */
  async to(upstream: Upstream): Promise<Link | undefined> {
    if (upstream.spec.passthrough.length === 0) return undefined;
    const offer = offered(upstream.spec.passthrough, this.owner.clientCapabilities());
    if (Object.keys(offer).length === 0) return undefined;
    const known = this.links.get(upstream);
    if (known !== undefined) return known;
    const opening = this.open(upstream, offer);
    this.links.set(upstream, opening);
    opening.catch(() => this.drop(upstream, opening));
    return opening;
  }

  private async open(upstream: Upstream, offer: ClientCapabilities): Promise<Link> {
    const { owner } = this;
    const link = await upstream.openOwn(
      {
        odd: () => {},
        closed: () => this.links.delete(upstream),
        notification: (method, params) => owner.notification(upstream, method, params),
        asked: (method, params, signal) => {
          const feature = Object.hasOwn(ASKING, method) ? ASKING[method as Asking] : undefined;
          if (feature === undefined || offer[feature] === undefined) throw methodNotFound(method);
          return owner.ask(upstream, method as Asking, params, signal);
        },
      },
      offer,
    );
    if (this.closed) await link.close();
    return link;
  }

  private drop(upstream: Upstream, opening: Promise<Link>): void {
    if (this.links.get(upstream) === opening) this.links.delete(upstream);
  }

  /** Tells every upstream that has a connection of ours. */
  notify(method: string): void {
    for (const link of this.links.values()) {
      link.then((open) => open.notify(method)).catch(() => {});
    }
  }

  close(): void {
    this.closed = true;
    for (const link of this.links.values()) link.then((open) => open.close()).catch(() => {});
    this.links.clear();
  }
}
