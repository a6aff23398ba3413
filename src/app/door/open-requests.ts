/**
 * How many requests for approval and plans are open, for the quotas that bound them. They are counted by their ids, from the
 * store and from what this process is about to open, so that a unit that is run again counts once; what other
 * processes open is seen within a second.
 */
import type { Core } from "../../engine/core.ts";
import { TooMany } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../../model/approval.ts";
import type { RunDoc } from "../../model/run.ts";
import { allRows } from "../../port/pages.ts";
import type { Counted, Quotas } from "./quotas.ts";

/** Of requests and of plans, each of which is one question. */
const OPEN: ReadonlySet<string> = OPEN_APPROVAL;
export const RECOUNT_MS = 1_000;
/** A person decides when there is room again. */
const AGAIN_S = 10;

class TooManyOpen extends TooMany {}

export class OpenRequests {
  private readonly core: Pick<Core, "store" | "env">;
  private readonly quotas: Quotas;
  /** The ids of open requests by what is counted together, with when this process first knew of them. */
  private readonly open = new Map<string, Map<string, number>>();
  private counted: Promise<void> | undefined;
  private readonly looking = new Map<string, Promise<void>>();

  constructor(core: Pick<Core, "store" | "env">, quotas: Quotas) {
    this.core = core;
    this.quotas = quotas;
  }

  /** Asks with the count in place. Whoever is over it is looked at again: what ended meanwhile counts no more. */
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

  /** However many are refused at once, it is looked once at a time. */
  private lookAgain(who: Who): Promise<void> {
    const name = JSON.stringify([who.tenant, who.actor]);
    const looking = this.looking.get(name) ?? this.forgetEnded(who).finally(() => this.looking.delete(name));
    this.looking.set(name, looking);
    return looking;
  }

  /** Inside the unit that opens the request. */
  mayOpen({ tenant, actor }: Pick<RunDoc, "tenant" | "actor">, id: string): void {
    const limited = this.limited({ tenant, actor });
    for (const { quota, key } of limited) {
      const ids = this.idsOf(key);
      if (!ids.has(id) && ids.size >= quota.open_approvals!)
        throw new TooManyOpen(
          `over the quota of ${quota.open_approvals} open requests for approval; nothing was recorded, ask again when one of them was decided or withdrawn`,
          AGAIN_S,
        );
    }
    this.add(limited, id);
  }

  /** Takes the store's word for all of them. */
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
    this.forget((id, since) => !seen.has(id) && since < began - LIMITS.store_deadline_ms);
  }

  private async forgetEnded(who: Who): Promise<void> {
    const { store, env } = this.core;
    const young = env.elapsed() - LIMITS.store_deadline_ms;
    const ended = new Set<string>();
    for (const { key } of this.limited(who)) {
      for (const [id, since] of this.idsOf(key)) {
        const doc = (await store.get("approvals", id)) ?? (await store.get("plans", id));
        // One that is not there may be about to be.
        if (doc === undefined ? since < young : !OPEN.has(doc.status)) ended.add(id);
      }
    }
    this.forget((id) => ended.has(id));
  }

  private limited({ tenant, actor }: Who): Counted[] {
    return this.quotas.of({ tenant, name: actor }).filter(({ quota }) => quota.open_approvals !== undefined);
  }

  private idsOf(key: string): Map<string, number> {
    const ids = this.open.get(key) ?? new Map<string, number>();
    this.open.set(key, ids);
    return ids;
  }

  private add(limited: readonly Counted[], id: string): void {
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
