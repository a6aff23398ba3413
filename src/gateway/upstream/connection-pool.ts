/**
 * Connections of an upstream that belong to one owner, a principal or a session. Only this owner sees the state that
 * the upstream keeps for its connection, such as a browser page or a working directory. Idle connections are closed.
 * Beyond the limit a call is rejected and never uses another owner's connection.
 */
import type { ClientCapabilities } from "@modelcontextprotocol/client";
import type { RuntimeEnv } from "../../kernel/env.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { ConnectionHooks, UpstreamConnection } from "./connection.ts";
import { NotSentError } from "./failure.ts";

/** Owner of a connection. */
export interface ConnectionOwner {
  /** Identifies the owner. */
  key: string;
  /** Id of the principal whose tokens the connection uses. */
  principal?: string | undefined;
  tenant?: string | null | undefined;
  /** Requests that the upstream may send to the owner. Such a connection belongs to one session. */
  capabilities?: ClientCapabilities;
  asked?: ConnectionHooks["asked"];
  /** Receives notifications outside any request. Without it, the upstream's own hooks receive them. */
  notification?(method: string, params: JsonObject): void;
}

interface Held {
  link: Promise<UpstreamConnection>;
  uses: number;
  used_ms: number;
}

interface PoolSettings {
  max_connections: number;
  idle_ms: number;
}

export class ConnectionPool {
  private readonly env: RuntimeEnv;
  private readonly settings: PoolSettings;
  private readonly open: (holder: ConnectionOwner) => Promise<UpstreamConnection>;
  private readonly held = new Map<string, Held>();
  private readonly opened = new Set<UpstreamConnection>();

  constructor(
    env: RuntimeEnv,
    settings: PoolSettings,
    open: (holder: ConnectionOwner) => Promise<UpstreamConnection>,
  ) {
    this.env = env;
    this.settings = settings;
    this.open = open;
  }

  has(key: string): boolean {
    return this.held.has(key);
  }

  get links(): readonly UpstreamConnection[] {
    return [...this.opened].filter(({ closed }) => !closed);
  }

  /** Does the work on the owner's connection, which stays open while any work uses it. */
  async use<T>(holder: ConnectionOwner, work: (link: UpstreamConnection) => Promise<T>): Promise<T> {
    const held = this.held.get(holder.key) ?? this.begin(holder);
    held.uses++;
    try {
      return await work(await held.link);
    } finally {
      held.uses--;
      held.used_ms = this.env.elapsed();
    }
  }

  private begin(holder: ConnectionOwner): Held {
    const { max_connections } = this.settings;
    // The primary connection counts toward the limit.
    if (this.held.size + 1 >= max_connections) {
      throw new NotSentError(
        `it has reached its limit of ${max_connections} connections (max_connections); idle ones are closed automatically`,
      );
    }
    const link = this.open(holder);
    const held: Held = { link, uses: 0, used_ms: this.env.elapsed() };
    this.held.set(holder.key, held);
    link.then(
      (open) => this.opened.add(open),
      () => this.forget(holder.key, held),
    );
    return held;
  }

  private forget(key: string, held: Held): void {
    if (this.held.get(key) === held) this.held.delete(key);
  }

  /** Closes the owner's connection, or only the given one. */
  async drop(key: string, only?: UpstreamConnection): Promise<void> {
    const held = this.held.get(key);
    if (held === undefined) return;
    const link = await held.link.catch(() => undefined);
    if (only !== undefined && link !== only) return;
    this.forget(key, held);
    if (link === undefined) return;
    this.opened.delete(link);
    await link.close().catch(() => {});
  }

  /** Closes idle connections and returns the keys of their owners. */
  async sweep(): Promise<string[]> {
    const now = this.env.elapsed();
    const idle = [...this.held].filter(
      ([, { uses, used_ms }]) => uses === 0 && now - used_ms >= this.settings.idle_ms,
    );
    await Promise.all(idle.map(([key]) => this.drop(key)));
    return idle.map(([key]) => key);
  }

  async each(act: (link: UpstreamConnection) => Promise<unknown>, key: string): Promise<void> {
    const link = await this.held.get(key)?.link.catch(() => undefined);
    if (link !== undefined) await act(link).catch(() => {});
  }

  async close(): Promise<void> {
    await Promise.all([...this.held.keys()].map((key) => this.drop(key)));
  }
}
