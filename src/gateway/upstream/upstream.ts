/**
 * One configured tool server: its connection, the tools it showed last, and what is done when it breaks.
 * Whatever happens here stays here: it is reconnected with growing pauses, its session is renewed when
 * the server forgot it, and a server that no longer answers at all is dropped and begun anew.
 */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import { atMost } from "../../kernel/deadline.ts";
import type { Env } from "../../kernel/env.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { Logger } from "../../telemetry/log.ts";
import { failureOf, isSessionGone, isTimeout, NotSent, refusedConnection } from "./failure.ts";
import { Link, type LinkHooks, type LinkParts, type RequestOptions } from "./link.ts";
import { listTools, sameTools } from "./list-tools.ts";
import { hidingSecrets } from "./own-secrets.ts";
import { paramDeclarations, paramHeaders } from "./param-headers.ts";
import { type Holder, LinkPool } from "./pool.ts";
import { demandsTask } from "./task-call.ts";

interface UpstreamParts extends LinkParts {
  env: Env;
  log: Logger;
}

interface UpstreamHooks {
  /** The tools may be other ones than before, or be gone or back. */
  changed(upstream: Upstream): void;
  /** `holder` is whose connection it came over; null where it is shared. */
  notification(upstream: Upstream, method: string, params: JsonObject, holder: string | null): void;
  /** A holder's own connection was opened. */
  opened?(upstream: Upstream, link: Link): void;
}

const BACKOFF_MS = { first: 250, most: 30_000 };
/** How long a call waits for a connection that is just being made. */
const PATIENCE_MS = 2_000;
const PROBE_MS = 5_000;
/** Servers that announce each of many changes get one look. */
const SETTLE_MS = 30;

export class Upstream {
  readonly spec: UpstreamSpec;
  /** Takes the upstream's own address and credentials out of a text about it. */
  readonly hide: (text: string) => string;
  private readonly parts: UpstreamParts;
  private readonly hooks: UpstreamHooks;
  private readonly stopped = new AbortController();
  private link: Link | null = null;
  /** Whose the first connection is: the first to use it has it, so that a lone agent needs no second one. */
  private first: { holder: string; uses: number; used_ms: number } | null = null;
  private readonly pool: LinkPool;
  /** What holders' own connections listed, where that is not what the first one did. */
  private readonly variants = new Map<string, readonly JsonObject[]>();
  private connecting: Promise<void> | null = null;
  /** The first try to have a connection back that was lost: calls wait for it. */
  private returning: Promise<void> | null = null;
  private examining: Promise<void> | null = null;
  private looking: NodeJS.Timeout | null = null;
  private failures = 0;
  private definitions: readonly JsonObject[] = [];
  private complaint: string | null = "it is not connected yet";

  constructor(spec: UpstreamSpec, parts: UpstreamParts, hooks: UpstreamHooks) {
    this.spec = spec;
    this.hide = hidingSecrets(spec);
    this.parts = { ...parts, log: parts.log.child({ upstream: spec.name }) };
    this.hooks = hooks;
    this.pool = new LinkPool(parts.env, spec, (holder) => this.openFor(holder));
  }

  get name(): string {
    return this.spec.name;
  }

  get transport(): "stdio" | "http" {
    return "url" in this.spec ? "http" : "stdio";
  }

  get ok(): boolean {
    return this.link !== null;
  }

  /** Why it does not work, or null while it does. */
  get problem(): string | null {
    return this.complaint;
  }

  /** The tools as it defined them, to anybody; those of a broken upstream stay known. */
  get tools(): readonly JsonObject[] {
    if (this.variants.size === 0) return this.definitions;
    const named = new Map<unknown, JsonObject>();
    for (const definition of [this.definitions, ...this.variants.values()].flat())
      if (!named.has(definition["name"])) named.set(definition["name"], definition);
    return [...named.values()];
  }

  /** Whether it lists the tool to this holder. */
  shows(name: string, holder: Holder | undefined): boolean {
    const listed = (holder && this.variants.get(holder.key)) ?? this.definitions;
    return listed.some((definition) => definition["name"] === name);
  }

  /** Its own words on how it is to be used. */
  get instructions(): string | undefined {
    return this.link?.instructions;
  }

  /** Whether its first connection is being made for the first time. */
  get isStarting(): boolean {
    return this.failures === 0 && this.link === null && this.connecting !== null;
  }

  /** Resolves when the attempt to connect that is under way has ended. */
  async settled(): Promise<void> {
    await this.connecting;
  }

  /** Every connection that is open now. */
  get links(): readonly Link[] {
    return [...(this.link === null ? [] : [this.link]), ...this.pool.links];
  }

  get current(): Link | null {
    return this.link;
  }

  /** Resolves when the first attempt to connect has ended, well or not. */
  start(): Promise<void> {
    return this.connect();
  }

  private connect(): Promise<void> {
    this.connecting ??= this.attempt().finally(() => {
      this.connecting = null;
    });
    return this.connecting;
  }

  private async attempt(): Promise<void> {
    const { log } = this.parts;
    let link: Link | null = null;
    try {
      const parts = { ...this.parts, signal: this.stopped.signal };
      link = await Link.open(
        this.spec,
        parts,
        this.linkHooks(() => link),
      );
      if (this.stopped.signal.aborted) return await link.close();
      this.definitions = await listTools(link, this.spec.timeout_ms);
      this.link = link;
      this.complaint = null;
      this.failures = 0;
      log.info("upstream connected", { tools: this.definitions.length, era: link.era });
      this.hooks.changed(this);
      // It may have gone while its tools were being read.
      if (link.closed) this.lost(link, "the connection was closed");
    } catch (error) {
      await link?.close().catch(() => {});
      void this.failed(failureOf(error).message);
    }
  }

  private linkHooks(own: () => Link | null): LinkHooks {
    const { log } = this.parts;
    return {
      closed: (why) => this.lost(own(), why),
      odd: (problem) => log.debug("upstream oddity", { problem: this.hide(problem) }),
      notification: (method, params) => {
        if (method === "notifications/tools/list_changed") this.lookAgain();
        else this.hooks.notification(this, method, params, this.first?.holder ?? null);
      },
    };
  }

  private async openFor(holder: Holder): Promise<Link> {
    const { log } = this.parts;
    const { key, capabilities = {}, asked } = holder;
    const link: Link = await Link.open(
      this.spec,
      { ...this.parts, signal: this.stopped.signal },
      {
        odd: (problem) => log.debug("upstream oddity", { problem: this.hide(problem) }),
        closed: () => void this.release(key, link),
        notification: (method, params) => {
          if (method === "notifications/tools/list_changed") void this.readVariant(holder);
          if (holder.notification !== undefined) holder.notification(method, params);
          else this.hooks.notification(this, method, params, key);
        },
        ...(asked === undefined ? {} : { asked }),
      },
      capabilities,
    );
    this.hooks.opened?.(this, link);
    return link;
  }

  /** Reads what is listed over the holder's own connection, which may be more than over the first. */
  async readVariant(holder: Holder): Promise<void> {
    if (this.usesFirst(holder)) return;
    try {
      const tools = await this.pool.use(holder, (link) => listTools(link, this.spec.timeout_ms));
      const same = sameTools(tools, this.variants.get(holder.key) ?? this.definitions);
      if (same) return;
      this.variants.set(holder.key, tools);
      this.hooks.changed(this);
    } catch (error) {
      this.parts.log.warn("tools/list failed", { problem: this.hide(failureOf(error).message) });
    }
  }

  /** Ends a holder's connection: its session is over, or the connection is. */
  async release(key: string, only?: Link): Promise<void> {
    await this.pool.drop(key, only);
    if (!this.pool.has(key) && this.variants.delete(key)) this.hooks.changed(this);
  }

  /** Tells the upstream something over the holder's connection, where there is one. */
  async tell(holder: Holder, method: string): Promise<void> {
    await this.pool.each((link) => link.notify(method), holder.key);
  }

  /** Ends connections that their holders no longer use; what the first one keeps for a holder goes the same way. */
  async sweep(): Promise<void> {
    for (const key of await this.pool.sweep()) this.variants.delete(key);
    const { first, link } = this;
    if (first === null || first.uses > 0 || link === null) return;
    if (this.parts.env.elapsed() - first.used_ms < this.spec.idle_ms) return;
    await this.renew(link);
  }

  /** Whether the holder has a connection now. */
  isHeld(key: string): boolean {
    return this.pool.has(key) || this.first?.holder === key;
  }

  /** Whether the holder's requests go over the first connection. */
  private usesFirst(holder: Holder | undefined): boolean {
    if (holder === undefined) return true;
    if (holder.capabilities !== undefined) return false;
    return this.first === null ? !this.pool.has(holder.key) : this.first.holder === holder.key;
  }

  /** Does the work on the holder's connection; on the first one where there is no holder, or it is the holder's. */
  private async over<T>(holder: Holder | undefined, work: (link: Link) => Promise<T>): Promise<T> {
    // A connection of the holder's own does not hang on the first one, which another's call may have broken.
    if (holder !== undefined && this.pool.has(holder.key)) return this.pool.use(holder, work);
    const link = await this.usable();
    if (!this.usesFirst(holder)) return this.pool.use(holder!, work);
    if (holder === undefined) return work(link);
    this.first ??= { holder: holder.key, uses: 0, used_ms: 0 };
    const { first } = this;
    first.uses++;
    try {
      return await work(link);
    } finally {
      first.uses--;
      first.used_ms = this.parts.env.elapsed();
    }
  }

  private lost(link: Link | null, why: string): void {
    if (link === null || this.link !== link) return;
    this.link = null;
    this.first = null;
    const returning = this.failed(why).finally(() => {
      if (this.returning === returning) this.returning = null;
    });
    this.returning = returning;
    this.hooks.changed(this);
  }

  /** Resolves when the next try has ended. */
  private async failed(reason: string): Promise<void> {
    if (this.stopped.signal.aborted) return;
    const why = this.hide(reason);
    this.complaint = why;
    const { env, log } = this.parts;
    const full = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** Math.min(this.failures++, 16));
    const wait_ms = Math.round(full / 2 + (env.random() * full) / 2);
    log.warn("upstream is not connected", { problem: why, retry_in_ms: wait_ms });
    try {
      await env.sleep(wait_ms, this.stopped.signal);
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
          this.hooks.changed(this);
        },
        (error: unknown) =>
          this.parts.log.warn("tools/list failed", { problem: this.hide(failureOf(error).message) }),
      );
    }, SETTLE_MS).unref();
  }

  /** The shared connection; throws NotSent where there is none and none is about to be. */
  private async usable(): Promise<Link> {
    const coming = this.connecting ?? this.returning;
    if (this.link === null && coming !== null) await atMost(coming, PATIENCE_MS, this.parts);
    if (this.link === null)
      throw new NotSent(`it is not connected: ${this.complaint ?? "no reason is known"}`);
    return this.link;
  }

  /** A request over the holder's connection; over the first one where there is none to hold. */
  async request(
    method: string,
    params: JsonObject,
    options: RequestOptions,
    holder?: Holder,
  ): Promise<JsonObject> {
    let used: Link | null = null;
    const send = (link: Link) => {
      used = link;
      return link.request(method, params, options);
    };
    try {
      return await this.over(holder, send);
    } catch (error) {
      const link = used as Link | null;
      if (link?.hasSession && isSessionGone(error)) {
        // The server refused it unseen because it forgot the session, so it may be sent once more.
        await (link === this.link ? this.renew(link) : this.release(holder?.key ?? "", link));
        return this.over(holder, send);
      }
      const doubtful = failureOf(error).kind === "unknown" || refusedConnection(error) !== undefined;
      if (link !== null && options.cancellation?.cancelled !== true && doubtful)
        this.examine(link, error, holder);
      throw error;
    }
  }

  /** Takes the parameters over: they are the caller's no more. */
  callTool(
    name: string,
    definition: JsonObject,
    params: JsonObject,
    options: RequestOptions,
    holder?: Holder,
  ) {
    const modern = this.transport === "http" && this.links[0]?.era === "modern";
    const declared = modern ? paramDeclarations(definition) : [];
    const args = params["arguments"];
    const headers = declared.length > 0 && isJsonObject(args) ? paramHeaders(declared, args) : undefined;
    params["name"] = name;
    const sent = { ...options, headers, asTask: demandsTask(definition) };
    return this.request("tools/call", params, sent, holder);
  }

  private async renew(link: Link): Promise<void> {
    if (this.link === link) {
      this.link = null;
      this.first = null;
      this.complaint = "its session has ended";
      void link.close().catch(() => {});
    }
    await this.connect();
  }

  /** After a call without an answer: does the upstream still answer at all? */
  private examine(link: Link, error: unknown, holder: Holder | undefined): void {
    if (this.examining !== null) return;
    const why = isTimeout(error) ? "it does not answer" : failureOf(error).message;
    this.examining = link
      .request("tools/list", {}, { timeout_ms: PROBE_MS })
      .then(
        () => {},
        async (probe: unknown) => {
          if (failureOf(probe).kind === "answered") return;
          if (this.link === link) this.lost(link, why);
          else if (holder !== undefined) await this.release(holder.key, link);
          await link.close().catch(() => {});
        },
      )
      .finally(() => {
        this.examining = null;
      });
  }

  async close(): Promise<void> {
    this.stopped.abort();
    if (this.looking !== null) clearTimeout(this.looking);
    const { link } = this;
    this.link = null;
    this.complaint = "the gateway is stopping";
    await Promise.allSettled([link?.close(), this.pool.close(), this.connecting]);
  }
}
