/**
 * Connections of an upstream that belong to a holder: a principal, or a session. What an upstream keeps for a
 * connection (a browser's page, a working directory) is then seen by its holder alone. They end when they were not
 * used for a while, and there are only so many: past that a call is refused, never put on another's connection.
 */
import type { ClientCapabilities } from "@modelcontextprotocol/client";
import type { Env } from "../../kernel/env.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { NotSent } from "./failure.ts";
import type { Link, LinkHooks } from "./link.ts";

/** Whose connection a request goes over. */
export interface Holder {
  /** What tells holders apart. */
  key: string;
  /** What the upstream may ask of whoever holds it; such a connection is its session's own. */
  capabilities?: ClientCapabilities;
  asked?: LinkHooks["asked"];
  /** Told what belongs to no request; without it the upstream's own hooks are. */
  notification?(method: string, params: JsonObject): void;
}

interface Held {
  link: Promise<Link>;
  uses: number;
  used_ms: number;
}

interface PoolSettings {
  max_connections: number;
  idle_ms: number;
}

export class LinkPool {
  private readonly env: Env;
  private readonly settings: PoolSettings;
  private readonly open: (holder: Holder) => Promise<Link>;
  private readonly held = new Map<string, Held>();
  private readonly opened = new Set<Link>();

  constructor(env: Env, settings: PoolSettings, open: (holder: Holder) => Promise<Link>) {
    this.env = env;
    this.settings = settings;
    this.open = open;
  }

  has(key: string): boolean {
    return this.held.has(key);
  }

  get links(): readonly Link[] {
    return [...this.opened].filter(({ closed }) => !closed);
  }

  /** Does the work on the holder's connection, which is kept while anything is under way on it. */
  async use<T>(holder: Holder, work: (link: Link) => Promise<T>): Promise<T> {
    const held = this.held.get(holder.key) ?? this.begin(holder);
    held.uses++;
    try {
      return await work(await held.link);
    } finally {
      held.uses--;
      held.used_ms = this.env.elapsed();
    }
  }

  private begin(holder: Holder): Held {
    const { max_connections } = this.settings;
    // The upstream's first connection counts among them.
    if (this.held.size + 1 >= max_connections) {
      throw new NotSent(
        `it has ${max_connections} connections, as many as it may (max_connections); some end when they are idle`,
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

  /** Ends the holder's connection, or that one of its connections only. */
  async drop(key: string, only?: Link): Promise<void> {
    const held = this.held.get(key);
    if (held === undefined) return;
    const link = await held.link.catch(() => undefined);
    if (only !== undefined && link !== only) return;
    this.forget(key, held);
    if (link === undefined) return;
    this.opened.delete(link);
    await link.close().catch(() => {});
  }

  /** Ends what was not used for long; answers whose they were. */
  async sweep(): Promise<string[]> {
    const now = this.env.elapsed();
    const idle = [...this.held].filter(
      ([, { uses, used_ms }]) => uses === 0 && now - used_ms >= this.settings.idle_ms,
    );
    await Promise.all(idle.map(([key]) => this.drop(key)));
    return idle.map(([key]) => key);
  }

  async each(act: (link: Link) => Promise<unknown>, key: string): Promise<void> {
    const link = await this.held.get(key)?.link.catch(() => undefined);
    if (link !== undefined) await act(link).catch(() => {});
  }

  async close(): Promise<void> {
    await Promise.all([...this.held.keys()].map((key) => this.drop(key)));
  }
}
