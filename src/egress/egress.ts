/**
 * The only path for outgoing requests: notifications, anchors, traces, remote manifests, OIDC and gateway upstreams.
 * Checks each hop before it sends anything and connects to exactly the checked address. Ignores proxy variables of the
 * environment.
 */
import type { LookupFunction } from "node:net";
import type { Agent, BodyInit, fetch as fetchOfUndici, RequestInit } from "undici";
import { SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { withTimeout } from "../kernel/timeout.ts";
import { readBody, toFetchArguments } from "./body.ts";
import { EgressGuard, type HostLookup, type ResolvedAddress, systemErrorCode } from "./guard.ts";
import { parseHost, plainHost } from "./host.ts";
import { isRedirect, nextHop, type RequestHop } from "./redirect.ts";
import { type EgressRefusal, EgressRefusedError } from "./refusal.ts";
import { describeEgress, type EgressDescription, type EgressSettings } from "./settings.ts";

export interface EgressRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** For the whole exchange, including redirects and body. */
  readonly timeout_ms?: number;
  /** Headers that never go to another host, even if their names look harmless. */
  readonly secret_headers?: readonly string[];
  /** False returns a redirect to the caller like any other response. */
  readonly follow_redirects?: boolean;
  readonly max_bytes?: number;
  /** Keeps the first `max_bytes` of a longer response instead of failing. */
  readonly cut?: boolean;
  readonly signal?: AbortSignal;
}

export interface EgressResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A checked destination for a connection without HTTP: connect to `address`, verify the name `servername`. */
export interface CheckedHost extends ResolvedAddress {
  readonly servername: string | undefined;
  readonly port: number;
}

export interface EgressClient {
  request(url: string, options?: EgressRequest): Promise<EgressResponse>;
  /** `fetch` with the same checks, for libraries that need one. Its body can stream indefinitely. */
  readonly fetch: typeof globalThis.fetch;
  /** Returns the refusal that a request would get, without sending anything. */
  check(url: string): Promise<EgressRefusal | null>;
  checkHost(host: string, port: number): Promise<CheckedHost>;
  /** Resolves names for a connection of another library, and refuses what {@link check} refuses. */
  readonly connectLookup: LookupFunction;
  describe(): EgressDescription;
  close(): Promise<void>;
}

interface EgressParts {
  readonly lookup?: HostLookup;
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

export function createEgress(settings: EgressSettings, parts: EgressParts = {}): EgressClient {
  return new GuardedEgress(settings, parts);
}

class GuardedEgress implements EgressClient {
  private readonly settings: EgressSettings;
  private readonly log: EgressParts["log"];
  private readonly guard: EgressGuard;
  readonly connectLookup: LookupFunction;
  private sending: Promise<Sender> | undefined;

  constructor(settings: EgressSettings, parts: EgressParts) {
    this.settings = settings;
    this.log = parts.log;
    this.guard = new EgressGuard(settings, parts.lookup);
    this.connectLookup = this.guard.connectLookup;
  }

  /** Loads the HTTP library with the first request. Most commands send none, so they start faster. */
  private sender(): Promise<Sender> {
    this.sending ??= import("undici").then(({ Agent, fetch: send }) => ({
      send,
      agent: new Agent({
        // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn verification off.
        connect: {
          lookup: this.guard.connectLookup,
          timeout: SERVICE_LIMITS.egress_timeout_ms,
          rejectUnauthorized: true,
        },
        // A tool server can keep an idle event stream open. `request` has its own deadline.
        bodyTimeout: 0,
      }),
    }));
    return this.sending;
  }

  async request(url: string, options: EgressRequest = {}): Promise<EgressResponse> {
    const body = options.body ?? null;
    const hop = this.firstHop(url, options.method ?? "GET", new Headers(options.headers), body, true);
    const timeoutMs = options.timeout_ms ?? SERVICE_LIMITS.egress_timeout_ms;
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
        options.max_bytes ?? SERVICE_LIMITS.body_bytes,
        options.cut ?? false,
      );
      return { status: response.status, headers: Object.fromEntries(response.headers), body: read };
    } catch (error) {
      if (error instanceof SvcError) throw error;
      const host = hop.url.host;
      const what = deadline.aborted
        ? `no answer from ${host} within ${timeoutMs} ms`
        : `cannot reach ${host}: ${systemErrorCode(error)}`;
      throw new SvcError("delivery_failed", what, { cause: error });
    }
  }

  readonly fetch = (async (input: unknown, given?: unknown) => {
    const { url, init, body, replayable } = toFetchArguments(input, given);
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
  }) as typeof globalThis.fetch;

  async check(url: string): Promise<EgressRefusal | null> {
    const read = this.guard.readUrl(url);
    if ("refused" in read) return read.refused;
    try {
      await this.resolve(read.url.hostname);
      return null;
    } catch (error) {
      if (error instanceof EgressRefusedError) return error.refusal;
      return this.guard.refuse("unresolved", plainHost(read.url.hostname));
    }
  }

  async checkHost(host: string, port: number): Promise<CheckedHost> {
    const plain = parseHost(host);
    if (plain === undefined) throw new EgressRefusedError(this.guard.refuse("url", "the destination"));
    const refused = this.guard.judgeHost(plain);
    if (refused !== null) throw new EgressRefusedError(refused);
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

  /** Resolves with a timeout, so that a dead name server does not block the caller. */
  private resolve(host: string): Promise<readonly ResolvedAddress[]> {
    return withTimeout(this.guard.resolve(host), SERVICE_LIMITS.egress_timeout_ms, () => {
      throw new SvcError(
        "delivery_failed",
        `the name did not resolve within ${SERVICE_LIMITS.egress_timeout_ms} ms`,
      );
    });
  }

  private firstHop(
    url: string | URL,
    method: string,
    headers: Headers,
    body: unknown,
    replayable: boolean,
  ): RequestHop {
    const read = this.guard.readUrl(url);
    if ("refused" in read) throw new EgressRefusedError(read.refused);
    return {
      url: read.url,
      method,
      headers: Object.fromEntries(headers),
      has_body: body !== null,
      replayable,
    };
  }

  /** Sends a request and follows its redirects, with a check of every hop. */
  private async follow(first: RequestHop, out: Outgoing) {
    const { guard } = this;
    const { send, agent } = await this.sender();
    let hop = first;
    for (let redirects = 0; ; redirects++) {
      const read = guard.readUrl(hop.url);
      if ("refused" in read) throw new EgressRefusedError(read.refused);
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
      if (redirects >= SERVICE_LIMITS.egress_redirects) {
        throw new EgressRefusedError(guard.refuse("redirects", plainHost(first.url.hostname)));
      }
      const next = nextHop(hop, response.status, location, out.secret_headers);
      if ("rule" in next) throw new EgressRefusedError(guard.refuse(next.rule, plainHost(hop.url.hostname)));
      this.log?.debug("egress redirect", { from: hop.url.hostname, to: next.hop.url.hostname });
      hop = next.hop;
    }
  }
}

/** `fetch` wraps the cause of a failure. Callers need a refusal unwrapped. */
function unwrap(error: unknown): unknown {
  const cause = error instanceof TypeError ? error.cause : undefined;
  return cause instanceof Error ? cause : error;
}
