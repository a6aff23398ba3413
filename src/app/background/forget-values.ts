/**
 * The values of a request are deleted with it; here they leave the store's files, too, within the hour that is
 * promised. A database server clears its own dead rows.
 */
import type { Store } from "../../port/store.ts";

/** Four times an hour: what one round cannot do, the next one does in time. */
export const FORGET_VALUES_MS = 15 * 60_000;
/** The records that the end of a request leaves. */
const ENDINGS = ["approved", "denied", "approval_expired", "plan_denied"] as const;

export class ForgottenValues {
  private readonly store: Store;
  /** How many records the ledger had when the files were last without what was deleted; null while that is not known. */
  private clean: number | null = null;
  private opened: number | null = null;

  constructor(store: Store) {
    this.store = store;
  }

  async open(): Promise<void> {
    if (this.store.kind === "postgres") return;
    // A store that cannot be read is for others to complain about.
    this.opened = await this.endings().catch(() => null);
  }

  /**
   * At its pace: an earlier process may have been killed before it came to this. Any record may stand for values that
   * were deleted: an approved call's go for good with its outcome, a planned one's with the call.
   */
  async tidy(): Promise<void> {
    if (this.store.kind === "postgres") return;
    const { records } = await this.store.head();
    if (records === this.clean) return;
    await this.store.scrub();
    this.clean = records;
  }

  /** At the end of a process that may be the last for long: only where something ended meanwhile. */
  async close(): Promise<void> {
    if (this.opened === null || (await this.endings()) === this.opened) return;
    await this.tidy();
  }

  private async endings(): Promise<number> {
    const { events, records } = await this.store.head();
    const ended = ENDINGS.reduce((sum, event) => sum + (events[event] ?? 0), 0);
    // A planned call that needs no approval ends its part of the plan with a record like any other's.
    return events["plan_proposed"] === undefined ? ended : records;
  }
}
