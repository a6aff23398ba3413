/**
 * A configured tool server: chooses the connection of each request, keeps the last listed tools, and handles failed
 * requests. A forgotten session is renewed here, and a server that stops answering is dropped and reconnected.
 */
import { isPersonal, type UpstreamSpec } from "../../config/sections/gateway.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { type RequestOptions, UpstreamConnection } from "./connection.ts";
import { type ConnectionOwner, ConnectionPool } from "./connection-pool.ts";
import { failureOf, isSessionGone, isTimeout, NotSentError, refusedConnection } from "./failure.ts";
import { listTools, sameTools } from "./list-tools.ts";
import { paramDeclarations, paramHeaders } from "./param-headers.ts";
import { PrimaryConnection, type UpstreamDeps } from "./primary-connection.ts";
import { createSecretMask } from "./secret-mask.ts";
import { requiresTask } from "./task-call.ts";

interface UpstreamHooks {
  /** Called when the tools, or their availability, may have changed. */
  changed(upstream: UpstreamServer): void;
  /** `holder` is the owner of the connection. Null for the shared connection. */
  notification(upstream: UpstreamServer, method: string, params: JsonObject, holder: string | null): void;
  /** Called when an owner's separate connection was opened. */
  opened?(upstream: UpstreamServer, link: UpstreamConnection): void;
}

const PROBE_MS = 5_000;

/** The tools that an owner sees over its own connection. */
interface ToolVariant {
  tools: readonly JsonObject[];
  tenant: string | null;
}

const variantKey = (personal: boolean, { key, principal }: ConnectionOwner): string =>
  personal && principal !== undefined ? principal : key;

export class UpstreamServer {
  readonly spec: UpstreamSpec;
  /** Removes the upstream's own URL and credentials from a text. */
  readonly hide: (text: string) => string;
  private readonly parts: UpstreamDeps & { signal: AbortSignal };
  private readonly hooks: UpstreamHooks;
  private readonly stopped = new AbortController();
  private readonly first: PrimaryConnection;
  /** Owner of the primary connection: the first caller gets it, so that a single agent needs no second connection. */
  private firstHeld: { holder: string; uses: number; used_ms: number } | null = null;
  private readonly pool: ConnectionPool;
  /** Tool lists of separate connections that differ from the primary one, by owner. */
  private readonly variants = new Map<string, ToolVariant>();
  /** Whether each principal has its own tokens, so that a primary connection would have none. */
  private readonly personal: boolean;
  private examining: Promise<void> | null = null;

  constructor(spec: UpstreamSpec, parts: UpstreamDeps, hooks: UpstreamHooks) {
    this.spec = spec;
    this.personal = isPersonal(spec);
    this.hide = createSecretMask(spec);
    this.parts = { ...parts, log: parts.log.child({ upstream: spec.name }), signal: this.stopped.signal };
    this.hooks = hooks;
    this.first = new PrimaryConnection(
      spec,
      { ...this.partsOf(null), hide: this.hide },
      {
        changed: () => hooks.changed(this),
        ended: () => {
          this.firstHeld = null;
        },
        notification: (method, params) =>
          hooks.notification(this, method, params, this.firstHeld?.holder ?? null),
      },
    );
    this.pool = new ConnectionPool(parts.env, spec, (holder) => this.openFor(holder));
  }

  get name(): string {
    return this.spec.name;
  }

  get transport(): "stdio" | "http" {
    return "url" in this.spec ? "http" : "stdio";
  }

  get ok(): boolean {
    return this.personal || this.current !== null;
  }

  /** Whether its tool list is known. */
  get isListed(): boolean {
    return this.personal ? this.variants.size > 0 : this.ok;
  }

  /** The protocol revision that it speaks, as far as a connection is open. */
  get era(): "legacy" | "modern" | undefined {
    return (this.current ?? this.links[0])?.era;
  }

  /** Explains why the upstream is unavailable. Null while it works. */
  get problem(): string | null {
    return this.personal ? null : this.first.problem;
  }

  /** The upstream's tool definitions over all connections. They stay known while the upstream is unavailable. */
  get tools(): readonly JsonObject[] {
    if (this.variants.size === 0) return this.first.tools;
    const named = new Map<unknown, JsonObject>();
    for (const definition of [
      this.first.tools,
      ...[...this.variants.values()].map(({ tools }) => tools),
    ].flat())
      if (!named.has(definition["name"])) named.set(definition["name"], definition);
    return [...named.values()];
  }

  /** Whether the upstream lists the tool to this owner. */
  shows(name: string, holder: ConnectionOwner | undefined): boolean {
    return this.listedTo(holder).some((definition) => definition["name"] === name);
  }

  /** The owner's own list, or before its consent the lists of others in its tenant. */
  private listedTo(holder: ConnectionOwner | undefined): readonly JsonObject[] {
    const own = holder && this.variants.get(variantKey(this.personal, holder));
    if (own !== undefined) return own.tools;
    if (!this.personal) return this.first.tools;
    const tenant = holder?.tenant ?? null;
    return [...this.variants.values()].flatMap((variant) => (variant.tenant === tenant ? variant.tools : []));
  }

  /** Whether this owner's own tool list is known. */
  hasListed(holder: ConnectionOwner): boolean {
    return this.variants.has(variantKey(this.personal, holder));
  }

  /** The upstream's own usage instructions. */
  get instructions(): string | undefined {
    return this.current?.instructions;
  }

  /** Whether the first connection attempt is in progress. */
  get isStarting(): boolean {
    return this.first.isStarting;
  }

  /** Resolves when the connection attempt in progress has ended. */
  settled(): Promise<void> {
    return this.first.settled();
  }

  /** All open connections. */
  get links(): readonly UpstreamConnection[] {
    return [...(this.current === null ? [] : [this.current]), ...this.pool.links];
  }

  /** The primary connection, if it is open. */
  get current(): UpstreamConnection | null {
    return this.first.current;
  }

  /** Resolves when the first connection attempt has ended, successfully or not. */
  start(): Promise<void> {
    return this.personal ? Promise.resolve() : this.first.connect();
  }

  /** Connects at once if the upstream is not connected, without waiting for the backoff. */
  retry(): void {
    if (!this.personal && this.current === null) void this.first.connect();
  }

  /** Sends with the principal's tokens, if the upstream has its own sign-in. The service's own tokens serve every owner. */
  private partsOf(principal: string | null): UpstreamDeps & { signal: AbortSignal } {
    const { parts, spec } = this;
    const send = parts.authorize?.(spec, this.personal ? principal : null);
    return send === undefined ? parts : { ...parts, send };
  }

  private async openFor(holder: ConnectionOwner): Promise<UpstreamConnection> {
    const { log } = this.parts;
    const { key, capabilities = {}, asked } = holder;
    const link: UpstreamConnection = await UpstreamConnection.open(
      this.spec,
      this.partsOf(holder.principal ?? null),
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

  /** Lists the tools over the owner's separate connection, which may offer more than the primary one. */
  async readVariant(holder: ConnectionOwner): Promise<void> {
    try {
      await this.listFor(holder);
    } catch (error) {
      this.parts.log.warn("tools/list failed", { problem: this.hide(failureOf(error).message) });
    }
  }

  /** The same. Throws if the tools cannot be listed. */
  async listFor(holder: ConnectionOwner): Promise<void> {
    if (this.usesFirst(holder)) return;
    const tools = await this.pool.use(holder, (link) => listTools(link, this.spec.timeout_ms));
    const key = variantKey(this.personal, holder);
    const known = this.variants.get(key)?.tools ?? (this.personal ? null : this.first.tools);
    if (known !== null && sameTools(tools, known)) return;
    // Most owners see the same tools, which are kept once.
    const alike = [...this.variants.values()].find((one) => sameTools(one.tools, tools));
    this.variants.set(key, { tools: alike?.tools ?? tools, tenant: holder.tenant ?? null });
    this.hooks.changed(this);
  }

  /** Closes an owner's connection after its session or the connection itself ended. */
  async release(key: string, only?: UpstreamConnection): Promise<void> {
    await this.pool.drop(key, only);
    // A principal's tools stay known without a connection.
    if (!this.personal && !this.pool.has(key) && this.variants.delete(key)) this.hooks.changed(this);
  }

  /** Sends a notification over the owner's connection, if there is one. */
  async tell(holder: ConnectionOwner, method: string): Promise<void> {
    await this.pool.each((link) => link.notify(method), holder.key);
  }

  /** Closes idle connections. If the owner of the primary connection is idle, that connection is renewed. */
  async sweep(): Promise<void> {
    const closed = await this.pool.sweep();
    if (!this.personal) for (const key of closed) this.variants.delete(key);
    const { firstHeld: held, current } = this;
    if (held === null || held.uses > 0 || current === null) return;
    if (this.parts.env.elapsed() - held.used_ms < this.spec.idle_ms) return;
    await this.first.renew(current);
  }

  /** Whether the owner has a connection now. */
  isHeld(key: string): boolean {
    return this.pool.has(key) || this.firstHeld?.holder === key;
  }

  /** Whether the owner's requests use the primary connection. */
  private usesFirst(holder: ConnectionOwner | undefined): boolean {
    if (this.personal) return false;
    if (holder === undefined) return true;
    if (holder.capabilities !== undefined) return false;
    return this.firstHeld === null ? !this.pool.has(holder.key) : this.firstHeld.holder === holder.key;
  }

  /** Does the work on the owner's connection, or on the primary one if it is shared or belongs to the owner. */
  private async over<T>(
    holder: ConnectionOwner | undefined,
    work: (link: UpstreamConnection) => Promise<T>,
  ): Promise<T> {
    // A separate connection does not depend on the primary one, which another owner's call may have broken.
    if (holder !== undefined && (this.personal || this.pool.has(holder.key)))
      return this.pool.use(holder, work);
    if (this.personal) throw new NotSentError("its tokens belong to principals, and this request has none");
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

  /** Sends a request over the owner's connection, or over the primary one without an owner. */
  async request(
    method: string,
    params: JsonObject,
    options: RequestOptions,
    holder?: ConnectionOwner,
  ): Promise<JsonObject> {
    let used: UpstreamConnection | null = null;
    const send = (link: UpstreamConnection) => {
      used = link;
      return link.request(method, params, options);
    };
    try {
      return await this.over(holder, send);
    } catch (error) {
      const link = used as UpstreamConnection | null;
      if (link?.hasSession && isSessionGone(error)) {
        // The server forgot the session and did not run the request, so sending it again is safe.
        await (link === this.current ? this.first.renew(link) : this.release(holder?.key ?? "", link));
        return this.over(holder, send);
      }
      const doubtful = failureOf(error).kind === "unknown" || refusedConnection(error) !== undefined;
      if (link !== null && options.cancellation?.cancelled !== true && doubtful)
        this.examine(link, error, holder);
      throw error;
    }
  }

  /** Calls a tool. Takes ownership of `params` and modifies it. */
  callTool(
    name: string,
    definition: JsonObject,
    params: JsonObject,
    options: RequestOptions,
    holder?: ConnectionOwner,
  ) {
    const modern = this.transport === "http" && this.links[0]?.era === "modern";
    const declared = modern ? paramDeclarations(definition) : [];
    const args = params["arguments"];
    const headers = declared.length > 0 && isJsonObject(args) ? paramHeaders(declared, args) : undefined;
    params["name"] = name;
    const sent = { ...options, headers, asTask: requiresTask(definition) };
    return this.request("tools/call", params, sent, holder);
  }

  /** Checks after a call without a response whether the upstream still answers at all. */
  private examine(link: UpstreamConnection, error: unknown, holder: ConnectionOwner | undefined): void {
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
