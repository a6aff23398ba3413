/**
 * Counts open approval requests and plans for quotas. Requests are counted by id, from the store and from those this
 * process is about to open, so a repeated transaction counts once. Requests of other processes are counted within a
 * second.
 */
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import type { EngineCore } from "../../govern/core.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { TooManyError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { CallerQuotas, QuotaCounter } from "./quotas.ts";

/** Open states of requests and plans. Each plan counts as one request. */
const OPEN: ReadonlySet<string> = OPEN_APPROVAL_STATUSES;
export const RECOUNT_MS = 1_000;
/** Retry-After value: room appears only when an approver decides. */
const AGAIN_S = 10;

class TooManyOpen extends TooManyError {}

export class OpenRequests {
  private readonly core: Pick<EngineCore, "store" | "env">;
  private readonly quotas: CallerQuotas;
  /** Ids of open requests by counting key, with the time at which this process first saw them. */
  private readonly open = new Map<string, Map<string, number>>();
  private counted: Promise<void> | undefined;
  private readonly looking = new Map<string, Promise<void>>();

  constructor(core: Pick<EngineCore, "store" | "env">, quotas: CallerQuotas) {
    this.core = core;
    this.quotas = quotas;
  }

  /** Calls `ask` with the counts loaded. If the quota is exceeded, removes ended requests and tries once more. */
  async around<T>(who: Who, ask: () => Promise<T>): Promise<T> {
    if (this.limited(who).length === 0) return ask();
    this.counted ??= this.recount();
    await this.counted.catch((error: unknown) => {
      this.counted = undefined;
      throw error;
    });
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TooManyOpen)) throw error;
      await this.lookAgain(who);
      return ask();
    }
  }

  /** Shares one check among concurrent refusals. */
  private lookAgain(who: Who): Promise<void> {
    const name = JSON.stringify([who.tenant, who.actor]);
    const looking = this.looking.get(name) ?? this.forgetEnded(who).finally(() => this.looking.delete(name));
    this.looking.set(name, looking);
    return looking;
  }

  /** Called inside the transaction that opens the request. */
  mayOpen({ tenant, actor }: Pick<RunDoc, "tenant" | "actor">, id: string): void {
    const limited = this.limited({ tenant, actor });
    for (const { quota, key } of limited) {
      const ids = this.idsOf(key);
      if (!ids.has(id) && ids.size >= quota.open_approvals!)
        throw new TooManyOpen(
          `over the quota of ${quota.open_approvals} open approval requests; nothing was recorded. Try again after one of them is decided or withdrawn`,
          AGAIN_S,
        );
    }
    this.add(limited, id);
  }

  /** Recounts all open requests from the store. */
  async recount(): Promise<void> {
    const { store, env } = this.core;
    const began = env.elapsed();
    const seen = new Set<string>();
    for (const table of ["approvals", "plans"] as const) {
      for await (const { doc } of allRows(store, table, { tag: [...OPEN] })) {
        seen.add(doc.id);
        this.add(this.limited(doc), doc.id);
      }
    }
    this.forget((id, since) => !seen.has(id) && since < began - SERVICE_LIMITS.store_deadline_ms);
  }

  private async forgetEnded(who: Who): Promise<void> {
    const { store, env } = this.core;
    const young = env.elapsed() - SERVICE_LIMITS.store_deadline_ms;
    const ended = new Set<string>();
    for (const { key } of this.limited(who)) {
      for (const [id, since] of this.idsOf(key)) {
        const doc = (await store.get("approvals", id)) ?? (await store.get("plans", id));
        // A missing document may be about to be written.
        if (doc === undefined ? since < young : !OPEN.has(doc.status)) ended.add(id);
      }
    }
    this.forget((id) => ended.has(id));
  }

  private limited({ tenant, actor }: Who): QuotaCounter[] {
    return this.quotas.of({ tenant, name: actor }).filter(({ quota }) => quota.open_approvals !== undefined);
  }

  private idsOf(key: string): Map<string, number> {
    const ids = this.open.get(key) ?? new Map<string, number>();
    this.open.set(key, ids);
    return ids;
  }

  private add(limited: readonly QuotaCounter[], id: string): void {
    const now = this.core.env.elapsed();
    for (const { key } of limited) {
      const ids = this.idsOf(key);
      if (!ids.has(id)) ids.set(id, now);
    }
  }

  private forget(isOver: (id: string, since: number) => boolean): void {
    for (const [key, ids] of this.open) {
      for (const [id, since] of ids) if (isOver(id, since)) ids.delete(id);
      if (ids.size === 0) this.open.delete(key);
    }
  }
}

type Who = Pick<ApprovalDoc, "tenant" | "actor">;
