/**
 * The one door through which every outgoing request leaves: notifications, anchors, traces, remote
 * manifests, OIDC and gateway upstreams. Each hop is judged before anything is sent, the socket connects
 * to the very address that was judged, and proxy variables of the environment are not looked at.
 */
import type { Agent, BodyInit, fetch as fetchOfUndici, RequestInit } from "undici";
import { within } from "../kernel/deadline.ts";
import { SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import { readBody, toInit } from "./body.ts";
import { codeOf, EgressGuard, type Lookup, type ResolvedAddress } from "./guard.ts";
import { parseHost, plainHost } from "./host.ts";
import { type Hop, isRedirect, nextHop } from "./redirect.ts";
import { type EgressRefusal, EgressRefused } from "./refusal.ts";
import { describeEgress, type EgressDescription, type EgressSettings } from "./settings.ts";

export interface EgressRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** For the whole exchange, redirects and body included. */
  readonly timeout_ms?: number;
  /** Never sent on to another host, even where the header's name looks harmless. */
  readonly secret_headers?: readonly string[];
  /** False where a redirect is an answer like any other, for the caller to judge. */
  readonly follow_redirects?: boolean;
  readonly max_bytes?: number;
  /** Keep the first `max_bytes` of a longer answer instead of failing. */
  readonly cut?: boolean;
  readonly signal?: AbortSignal;
}

export interface EgressResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A checked place for a connection that is not HTTP: connect to `address`, verify the name `servername`. */
export interface CheckedHost extends ResolvedAddress {
  readonly servername: string | undefined;
  readonly port: number;
}

export interface Egress {
  request(url: string, options?: EgressRequest): Promise<EgressResponse>;
  /** `fetch` with the same checks, for libraries that take one; its body may stream for ever. */
  readonly fetch: typeof globalThis.fetch;
  /** What would be refused, without sending anything. */
  check(url: string): Promise<EgressRefusal | null>;
  checkHost(host: string, port: number): Promise<CheckedHost>;
  describe(): EgressDescription;
  close(): Promise<void>;
}

interface EgressParts {
  readonly lookup?: Lookup;
  readonly log?: { debug(msg: string, fields?: Record<string, unknown>): void };
}

interface Outgoing {
  readonly init: RequestInit;
  readonly body: BodyInit | null;
  readonly secret_headers: readonly string[];
  readonly follow_redirects: boolean;
}

interface Sender {
  readonly send: typeof fetchOfUndici;
  readonly agent: Agent;
}

export function createEgress(settings: EgressSettings, parts: EgressParts = {}): Egress {
  return new GuardedEgress(settings, parts);
}

class GuardedEgress implements Egress {
  private readonly settings: EgressSettings;
  private readonly log: EgressParts["log"];
  private readonly guard: EgressGuard;
  private sending: Promise<Sender> | undefined;

  constructor(settings: EgressSettings, parts: EgressParts) {
    this.settings = settings;
    this.log = parts.log;
    this.guard = new EgressGuard(settings, parts.lookup);
  }

  /** The library is loaded with the first request: most commands send none, and start the sooner. */
  private sender(): Promise<Sender> {
    this.sending ??= import("undici").then(({ Agent, fetch: send }) => ({
      send,
      agent: new Agent({
        // Set here so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch verification off.
        connect: {
          lookup: this.guard.connectLookup,
          timeout: LIMITS.egress_timeout_ms,
          rejectUnauthorized: true,
        },
        // A tool server may hold an event stream open in silence; `request` has its own deadline.
        bodyTimeout: 0,
      }),
    }));
    return this.sending;
  }

  async request(url: string, options: EgressRequest = {}): Promise<EgressResponse> {
    const body = options.body ?? null;
    const hop = this.firstHop(url, options.method ?? "GET", new Headers(options.headers), body, true);
    const timeoutMs = options.timeout_ms ?? LIMITS.egress_timeout_ms;
    const deadline = AbortSignal.timeout(timeoutMs);
    const signal = options.signal === undefined ? deadline : AbortSignal.any([deadline, options.signal]);
    try {
      const response = await this.follow(hop, {
        init: { signal },
        body,
        secret_headers: options.secret_headers ?? [],
        follow_redirects: options.follow_redirects ?? true,
      });
      const read = await readBody(
        response.body,
        options.max_bytes ?? LIMITS.body_bytes,
        options.cut ?? false,
      );
      return { status: response.status, headers: Object.fromEntries(response.headers), body: read };
    } catch (error) {
      if (error instanceof SvcError) throw error;
      const host = hop.url.host;
      const what = deadline.aborted
        ? `no answer from ${host} within ${timeoutMs} ms`
        : `cannot reach ${host}: ${codeOf(error)}`;
      throw new SvcError("delivery_failed", what, { cause: error });
    }
  }

  readonly fetch = (async (input: unknown, given?: unknown) => {
    const { url, init, body, replayable } = toInit(input, given);
    const method = (init.method ?? "GET").toUpperCase();
    const hop = this.firstHop(
      url,
      method,
      new Headers(init.headers as ConstructorParameters<typeof Headers>[0]),
      body,
      replayable,
    );
    const follow_redirects = (init.redirect ?? "follow") === "follow";
    const response = await this.follow(hop, { init, body, secret_headers: [], follow_redirects });
    if (init.redirect === "error" && isRedirect(response.status, response.headers.get("location"))) {
      await response.body?.cancel();
      throw new TypeError("unexpected redirect");
    }
    return response;
  }) as unknown as typeof globalThis.fetch;

  async check(url: string): Promise<EgressRefusal | null> {
    const read = this.guard.readUrl(url);
    if ("refused" in read) return read.refused;
    try {
      await this.resolve(read.url.hostname);
      return null;
    } catch (error) {
      if (error instanceof EgressRefused) return error.refusal;
      return this.guard.refuse("unresolved", plainHost(read.url.hostname));
    }
  }

  async checkHost(host: string, port: number): Promise<CheckedHost> {
    const plain = parseHost(host);
    if (plain === undefined) throw new EgressRefused(this.guard.refuse("url", "the destination"));
    const refused = this.guard.judgeHost(plain);
    if (refused !== null) throw new EgressRefused(refused);
    const found = await this.resolve(plain);
    const { address, family } = found[0]!;
    return { address, family, port, servername: address === plain ? undefined : plain };
  }

  describe(): EgressDescription {
    return describeEgress(this.settings);
  }

  async close(): Promise<void> {
    await (await this.sending)?.agent.destroy();
  }

  /** A name server that never answers must not hold up its caller. */
  private resolve(host: string): Promise<readonly ResolvedAddress[]> {
    return within(this.guard.resolve(host), LIMITS.egress_timeout_ms, () => {
      throw new SvcError("delivery_failed", `the name did not resolve within ${LIMITS.egress_timeout_ms} ms`);
    });
  }

  private firstHop(
    url: string | URL,
    method: string,
    headers: Headers,
    body: unknown,
    replayable: boolean,
  ): Hop {
    const read = this.guard.readUrl(url);
    if ("refused" in read) throw new EgressRefused(read.refused);
    return {
      url: read.url,
      method,
      headers: Object.fromEntries(headers),
      has_body: body !== null,
      replayable,
    };
  }

  /** Sends a request and what redirects make of it, judging every hop. */
  private async follow(first: Hop, out: Outgoing) {
    const { guard } = this;
    const { send, agent } = await this.sender();
    let hop = first;
    for (let redirects = 0; ; redirects++) {
      const read = guard.readUrl(hop.url);
      if ("refused" in read) throw new EgressRefused(read.refused);
      const response = await send(hop.url, {
        ...out.init,
        method: hop.method,
        headers: { "user-agent": "svc", ...hop.headers },
        body: hop.has_body ? out.body : null,
        redirect: "manual",
        dispatcher: agent,
      }).catch((error: unknown) => {
        throw unwrap(error);
      });
      const location = response.headers.get("location");
      if (!out.follow_redirects || !isRedirect(response.status, location)) return response;
      await response.body?.cancel().catch(() => undefined);
      if (redirects >= LIMITS.egress_redirects) {
        throw new EgressRefused(guard.refuse("redirects", plainHost(first.url.hostname)));
      }
      const next = nextHop(hop, response.status, location, out.secret_headers);
      if ("rule" in next) throw new EgressRefused(guard.refuse(next.rule, plainHost(hop.url.hostname)));
      this.log?.debug("egress redirect", { from: hop.url.hostname, to: next.hop.url.hostname });
      hop = next.hop;
    }
  }
}

/** `fetch` hides what went wrong one level down; a refusal must come out as itself. */
function unwrap(error: unknown): unknown {
  const cause = error instanceof TypeError ? error.cause : undefined;
  return cause instanceof Error ? cause : error;
}
