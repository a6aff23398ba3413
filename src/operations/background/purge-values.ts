/**
 * Purges deleted values of ended requests from the store's files, within the promised hour. A database server clears
 * its own dead rows.
 */
import type { StateStore } from "../../govern/port/store.ts";

/** Four times an hour, so a failed round can be repeated in time. */
export const PURGE_VALUES_INTERVAL_MS = 15 * 60_000;
/** Ledger events that end a request. */
const ENDINGS = ["approved", "denied", "approval_expired", "plan_denied"] as const;

export class ValuePurger {
  private readonly store: StateStore;
  /** Ledger length at the last purge; null if unknown. */
  private clean: number | null = null;
  private opened: number | null = null;

  constructor(store: StateStore) {
    this.store = store;
  }

  async open(): Promise<void> {
    if (this.store.kind === "postgres") return;
    // An unreadable store is reported elsewhere.
    this.opened = await this.endings().catch(() => null);
  }

  /**
   * Purges if the ledger has grown. The first round always purges, because an earlier process may have died before its
   * own. Any record can mean deleted values: an approved call's values go with its outcome, a planned call's with the
   * call.
   */
  async tidy(): Promise<void> {
    if (this.store.kind === "postgres") return;
    const { records } = await this.store.head();
    if (records === this.clean) return;
    await this.store.scrub();
    this.clean = records;
  }

  /** Purges at shutdown, but only if a request has ended since the start: the next process may start much later. */
  async close(): Promise<void> {
    if (this.opened === null || (await this.endings()) === this.opened) return;
    await this.tidy();
  }

  private async endings(): Promise<number> {
    const { events, records } = await this.store.head();
    const ended = ENDINGS.reduce((sum, event) => sum + (events[event] ?? 0), 0);
    // With plans, any record can end a request: a planned call that needs no approval ends with an ordinary record.
    return events["plan_proposed"] === undefined ? ended : records;
  }
}
