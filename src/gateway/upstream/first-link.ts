/**
 * The connection of an upstream that is always wanted, and the tools listed over it. It is had back with growing pauses
 * when it is lost, and begun anew when the server forgot its session; the tools of a lost one stay known.
 */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import { atMost } from "../../kernel/deadline.ts";
import type { Env } from "../../kernel/env.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Logger } from "../../telemetry/log.ts";
import { failureOf, NotSent } from "./failure.ts";
import { Link, type LinkParts } from "./link.ts";
import { listTools } from "./list-tools.ts";

export interface UpstreamParts extends LinkParts {
  env: Env;
  log: Logger;
}

interface FirstLinkParts extends UpstreamParts {
  /** Aborts when the upstream is closed for good. */
  signal: AbortSignal;
  /** Takes the upstream's own address and credentials out of a text about it. */
  hide(text: string): string;
}

interface FirstLinkHooks {
  /** The tools may be other ones than before, or be gone or back. */
  changed(): void;
  /** What the server kept for this connection is gone with it. */
  ended(): void;
  notification(method: string, params: JsonObject): void;
}

const BACKOFF_MS = { first: 250, most: 30_000 };
/** How long a call waits for a connection that is just being made. */
const PATIENCE_MS = 2_000;
/** Servers that announce each of many changes get one look. */
const SETTLE_MS = 30;

export class FirstLink {
  private readonly spec: UpstreamSpec;
  private readonly parts: FirstLinkParts;
  private readonly hooks: FirstLinkHooks;
  private link: Link | null = null;
  private connecting: Promise<void> | null = null;
  /** The first try to have a connection back that was lost: calls wait for it. */
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

  get current(): Link | null {
    return this.link;
  }

  get tools(): readonly JsonObject[] {
    return this.definitions;
  }

  /** Why it does not work, or null while it does. */
  get problem(): string | null {
    return this.complaint;
  }

  /** Whether it is being made for the first time. */
  get isStarting(): boolean {
    return this.failures === 0 && this.link === null && this.connecting !== null;
  }

  /** Resolves when the attempt to connect that is under way has ended. */
  async settled(): Promise<void> {
    await this.connecting;
  }

  /** Resolves when an attempt to connect has ended, well or not. */
  connect(): Promise<void> {
    this.connecting ??= this.attempt().finally(() => {
      this.connecting = null;
    });
    return this.connecting;
  }

  private async attempt(): Promise<void> {
    const { log, signal, hide } = this.parts;
    let link: Link | null = null;
    try {
      link = await Link.open(this.spec, this.parts, {
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
      // It may have gone while its tools were being read.
      if (link.closed) this.lose(link, "the connection was closed");
    } catch (error) {
      await link?.close().catch(() => {});
      void this.failed(failureOf(error).message);
    }
  }

  /** Gives the connection up and begins to have one back, unless it is not the present one. */
  lose(link: Link | null, why: string): void {
    if (link === null || this.link !== link) return;
    this.link = null;
    this.hooks.ended();
    const returning = this.failed(why).finally(() => {
      if (this.returning === returning) this.returning = null;
    });
    this.returning = returning;
    this.hooks.changed();
  }

  /** Resolves when the next try has ended. */
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

  /** The connection; throws NotSent where there is none and none is about to be. */
  async usable(): Promise<Link> {
    const coming = this.connecting ?? this.returning;
    if (this.link === null && coming !== null) await atMost(coming, PATIENCE_MS, this.parts);
    if (this.link === null)
      throw new NotSent(`it is not connected: ${this.complaint ?? "no reason is known"}`);
    return this.link;
  }

  /** Another connection in place of this one, unless that has happened. */
  async renew(link: Link): Promise<void> {
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
