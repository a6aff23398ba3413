/**
 * One configured tool server: whose requests go over which of its connections, the tools it showed last, and what is
 * done when a request fails. Whatever happens here stays here: a session that the server forgot is renewed, and a
 * server that no longer answers at all is dropped and begun anew.
 */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { failureOf, isSessionGone, isTimeout, refusedConnection } from "./failure.ts";
import { FirstLink, type UpstreamParts } from "./first-link.ts";
import { Link, type RequestOptions } from "./link.ts";
import { listTools, sameTools } from "./list-tools.ts";
import { hidingSecrets } from "./own-secrets.ts";
import { paramDeclarations, paramHeaders } from "./param-headers.ts";
import { type Holder, LinkPool } from "./pool.ts";
import { demandsTask } from "./task-call.ts";

interface UpstreamHooks {
  /** The tools may be other ones than before, or be gone or back. */
  changed(upstream: Upstream): void;
  /** `holder` is whose connection it came over; null where it is shared. */
  notification(upstream: Upstream, method: string, params: JsonObject, holder: string | null): void;
  /** A holder's own connection was opened. */
  opened?(upstream: Upstream, link: Link): void;
}

const PROBE_MS = 5_000;

export class Upstream {
  readonly spec: UpstreamSpec;
  /** Takes the upstream's own address and credentials out of a text about it. */
  readonly hide: (text: string) => string;
  private readonly parts: UpstreamParts & { signal: AbortSignal };
  private readonly hooks: UpstreamHooks;
  private readonly stopped = new AbortController();
  private readonly first: FirstLink;
  /** Whose the first connection is: the first to use it has it, so that a lone agent needs no second one. */
  private firstHeld: { holder: string; uses: number; used_ms: number } | null = null;
  private readonly pool: LinkPool;
  /** What holders' own connections listed, where that is not what the first one did. */
  private readonly variants = new Map<string, readonly JsonObject[]>();
  private examining: Promise<void> | null = null;

  constructor(spec: UpstreamSpec, parts: UpstreamParts, hooks: UpstreamHooks) {
    this.spec = spec;
    this.hide = hidingSecrets(spec);
    this.parts = { ...parts, log: parts.log.child({ upstream: spec.name }), signal: this.stopped.signal };
    this.hooks = hooks;
    this.first = new FirstLink(
      spec,
      { ...this.parts, hide: this.hide },
      {
        changed: () => hooks.changed(this),
        ended: () => {
          this.firstHeld = null;
        },
        notification: (method, params) =>
          hooks.notification(this, method, params, this.firstHeld?.holder ?? null),
      },
    );
    this.pool = new LinkPool(parts.env, spec, (holder) => this.openFor(holder));
  }

  get name(): string {
    return this.spec.name;
  }

  get transport(): "stdio" | "http" {
    return "url" in this.spec ? "http" : "stdio";
  }

  get ok(): boolean {
    return this.current !== null;
  }

  /** Why it does not work, or null while it does. */
  get problem(): string | null {
    return this.first.problem;
  }

  /** The tools as it defined them, to every client; those of a broken upstream stay known. */
  get tools(): readonly JsonObject[] {
    if (this.variants.size === 0) return this.first.tools;
    const named = new Map<unknown, JsonObject>();
    for (const definition of [this.first.tools, ...this.variants.values()].flat())
      if (!named.has(definition["name"])) named.set(definition["name"], definition);
    return [...named.values()];
  }

  /** Whether it lists the tool to this holder. */
  shows(name: string, holder: Holder | undefined): boolean {
    const listed = (holder && this.variants.get(holder.key)) ?? this.first.tools;
    return listed.some((definition) => definition["name"] === name);
  }

  /** Its own words on how it is to be used. */
  get instructions(): string | undefined {
    return this.current?.instructions;
  }

  /** Whether its first connection is being made for the first time. */
  get isStarting(): boolean {
    return this.first.isStarting;
  }

  /** Resolves when the attempt to connect that is under way has ended. */
  settled(): Promise<void> {
    return this.first.settled();
  }

  /** Every connection that is open now. */
  get links(): readonly Link[] {
    return [...(this.current === null ? [] : [this.current]), ...this.pool.links];
  }

  /** The first connection, where it stands. */
  get current(): Link | null {
    return this.first.current;
  }

  /** Resolves when the first attempt to connect has ended, well or not. */
  start(): Promise<void> {
    return this.first.connect();
  }

  private async openFor(holder: Holder): Promise<Link> {
    const { log } = this.parts;
    const { key, capabilities = {}, asked } = holder;
    const link: Link = await Link.open(
      this.spec,
      this.parts,
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
      const same = sameTools(tools, this.variants.get(holder.key) ?? this.first.tools);
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
    const { firstHeld: held, current } = this;
    if (held === null || held.uses > 0 || current === null) return;
    if (this.parts.env.elapsed() - held.used_ms < this.spec.idle_ms) return;
    await this.first.renew(current);
  }

  /** Whether the holder has a connection now. */
  isHeld(key: string): boolean {
    return this.pool.has(key) || this.firstHeld?.holder === key;
  }

  /** Whether the holder's requests go over the first connection. */
  private usesFirst(holder: Holder | undefined): boolean {
    if (holder === undefined) return true;
    if (holder.capabilities !== undefined) return false;
    return this.firstHeld === null ? !this.pool.has(holder.key) : this.firstHeld.holder === holder.key;
  }

  /** Does the work on the holder's connection; on the first one where there is no holder, or it is the holder's. */
  private async over<T>(holder: Holder | undefined, work: (link: Link) => Promise<T>): Promise<T> {
    // A connection of the holder's own does not hang on the first one, which another's call may have broken.
    if (holder !== undefined && this.pool.has(holder.key)) return this.pool.use(holder, work);
    const link = await this.first.usable();
    if (!this.usesFirst(holder)) return this.pool.use(holder!, work);
    if (holder === undefined) return work(link);
    this.firstHeld ??= { holder: holder.key, uses: 0, used_ms: 0 };
    const held = this.firstHeld;
    held.uses++;
    try {
      return await work(link);
    } finally {
      held.uses--;
      held.used_ms = this.parts.env.elapsed();
    }
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
        await (link === this.current ? this.first.renew(link) : this.release(holder?.key ?? "", link));
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
          if (this.current === link) this.first.lose(link, why);
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
    await Promise.allSettled([this.first.close(), this.pool.close()]);
  }
}
