/**
 * Primary connection of an upstream, which is always kept open, and the tools listed over it. A lost connection is
 * reopened with exponential backoff, and its tools stay known. A new one replaces it if the server forgot its session.
 */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { settleWithin } from "../../kernel/timeout.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import { type ConnectionDeps, UpstreamConnection } from "./connection.ts";
import { failureOf, NotSentError } from "./failure.ts";
import { listTools } from "./list-tools.ts";

export interface UpstreamDeps extends ConnectionDeps {
  env: RuntimeEnv;
  log: ServiceLogger;
  /** Sends a principal's requests with its tokens. Undefined for an upstream without its own sign-in. */
  authorize?(spec: UpstreamSpec, principal: string | null): typeof globalThis.fetch | undefined;
}

interface FirstLinkParts extends UpstreamDeps {
  /** Aborts when the upstream is closed permanently. */
  signal: AbortSignal;
  /** Removes the upstream's own URL and credentials from a text. */
  hide(text: string): string;
}

interface FirstLinkHooks {
  /** Called when the tools, or their availability, may have changed. */
  changed(): void;
  /** Called when the connection ended, together with the state that the server kept for it. */
  ended(): void;
  notification(method: string, params: JsonObject): void;
}

const BACKOFF_MS = { first: 250, most: 30_000 };
/** How long a call waits for a connection attempt in progress. */
const PATIENCE_MS = 2_000;
/** Debounce for servers that announce many changes at once. */
const SETTLE_MS = 30;

export class PrimaryConnection {
  private readonly spec: UpstreamSpec;
  private readonly parts: FirstLinkParts;
  private readonly hooks: FirstLinkHooks;
  private link: UpstreamConnection | null = null;
  private connecting: Promise<void> | null = null;
  /** The first attempt to reopen a lost connection. Calls wait for it. */
  private returning: Promise<void> | null = null;
  private looking: NodeJS.Timeout | null = null;
  private failures = 0;
  private definitions: readonly JsonObject[] = [];
  private complaint: string | null = "it is not connected yet";

  constructor(spec: UpstreamSpec, parts: FirstLinkParts, hooks: FirstLinkHooks) {
    this.spec = spec;
    this.parts = parts;
    this.hooks = hooks;
  }

  get current(): UpstreamConnection | null {
    return this.link;
  }

  get tools(): readonly JsonObject[] {
    return this.definitions;
  }

  /** Explains why the upstream is unavailable. Null while it works. */
  get problem(): string | null {
    return this.complaint;
  }

  /** Whether the first connection attempt is in progress. */
  get isStarting(): boolean {
    return this.failures === 0 && this.link === null && this.connecting !== null;
  }

  /** Resolves when the connection attempt in progress has ended. */
  async settled(): Promise<void> {
    await this.connecting;
  }

  /** Starts a connection attempt if none is in progress. Resolves when it has ended, successfully or not. */
  connect(): Promise<void> {
    this.connecting ??= this.attempt().finally(() => {
      this.connecting = null;
    });
    return this.connecting;
  }

  private async attempt(): Promise<void> {
    const { log, signal, hide } = this.parts;
    let link: UpstreamConnection | null = null;
    try {
      link = await UpstreamConnection.open(this.spec, this.parts, {
        closed: (why) => this.lose(link, why),
        odd: (problem) => log.debug("upstream oddity", { problem: hide(problem) }),
        notification: (method, params) => {
          if (method === "notifications/tools/list_changed") this.lookAgain();
          else this.hooks.notification(method, params);
        },
      });
      if (signal.aborted) return await link.close();
      this.definitions = await listTools(link, this.spec.timeout_ms);
      this.link = link;
      this.complaint = null;
      this.failures = 0;
      log.info("upstream connected", { tools: this.definitions.length, era: link.era });
      this.hooks.changed();
      // The connection may have closed while its tools were listed.
      if (link.closed) this.lose(link, "the connection was closed");
    } catch (error) {
      await link?.close().catch(() => {});
      void this.failed(failureOf(error).message);
    }
  }

  /** Drops the current connection and starts to reopen it. Ignores any other connection. */
  lose(link: UpstreamConnection | null, why: string): void {
    if (link === null || this.link !== link) return;
    this.link = null;
    this.hooks.ended();
    const returning = this.failed(why).finally(() => {
      if (this.returning === returning) this.returning = null;
    });
    this.returning = returning;
    this.hooks.changed();
  }

  /** Waits for the backoff and retries. Resolves when that attempt has ended. */
  private async failed(reason: string): Promise<void> {
    const { env, log, signal, hide } = this.parts;
    if (signal.aborted) return;
    const why = hide(reason);
    this.complaint = why;
    const full = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** Math.min(this.failures++, 16));
    const wait_ms = Math.round(full / 2 + (env.random() * full) / 2);
    log.warn("upstream is not connected", { problem: why, retry_in_ms: wait_ms });
    try {
      await env.sleep(wait_ms, signal);
    } catch {
      return;
    }
    if (this.link === null) await this.connect();
  }

  private lookAgain(): void {
    if (this.looking !== null) return;
    this.looking = setTimeout(() => {
      this.looking = null;
      const { link } = this;
      if (link === null) return;
      listTools(link, this.spec.timeout_ms).then(
        (tools) => {
          if (this.link !== link) return;
          this.definitions = tools;
          this.hooks.changed();
        },
        (error: unknown) =>
          this.parts.log.warn("tools/list failed", { problem: this.parts.hide(failureOf(error).message) }),
      );
    }, SETTLE_MS).unref();
  }

  /** The open connection. Throws NotSent if there is none, after a short wait for an attempt in progress. */
  async usable(): Promise<UpstreamConnection> {
    const coming = this.connecting ?? this.returning;
    if (this.link === null && coming !== null) await settleWithin(coming, PATIENCE_MS, this.parts);
    if (this.link === null)
      throw new NotSentError(`it is not connected: ${this.complaint ?? "unknown reason"}`);
    return this.link;
  }

  /** Replaces this connection with a new one, unless that already happened. */
  async renew(link: UpstreamConnection): Promise<void> {
    if (this.link === link) {
      this.link = null;
      this.hooks.ended();
      this.complaint = "its session has ended";
      void link.close().catch(() => {});
    }
    await this.connect();
  }

  async close(): Promise<void> {
    if (this.looking !== null) clearTimeout(this.looking);
    const { link } = this;
    this.link = null;
    this.complaint = "the gateway is stopping";
    await Promise.allSettled([link?.close(), this.connecting]);
  }
}
