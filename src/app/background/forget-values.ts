/**
 * The values of a request are deleted with it; here they leave the store's files, too, within the hour that is
 * promised. A database server clears its own dead rows.
 */
import type { Store } from "../../port/store.ts";

/** Four times an hour: what one round cannot do, the next one does in time. */
export const FORGET_VALUES_MS = 15 * 60_000;
/** The records that the end of a request leaves. */
const ENDINGS = ["approved", "denied", "approval_expired"] as const;

export class ForgottenValues {
  private readonly store: Store;
  /** How many endings the ledger had when the files were last without them; null while that is not known. */
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

  /** At its pace: an earlier process may have been killed before it came to this. */
  async tidy(): Promise<void> {
    if (this.store.kind === "postgres") return;
    const now = await this.endings();
    if (now === this.clean) return;
    await this.store.scrub();
    this.clean = now;
  }

  /** At the end of a process that may be the last for long: only where something ended meanwhile. */
  async close(): Promise<void> {
    if (this.opened === null || (await this.endings()) === (this.clean ?? this.opened)) return;
    await this.tidy();
  }

  private async endings(): Promise<number> {
    const { events } = await this.store.head();
    return ENDINGS.reduce((sum, event) => sum + (events[event] ?? 0), 0);
  }
}
