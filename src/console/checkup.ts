/** Verifying the ledger when a person asks, and remembering what came of it. */
import type { App } from "../app/app.ts";
import { checkLedgerOf } from "../evidence/ledger-check.ts";

interface Checked {
  ok: boolean;
  records: number;
  head: string;
  first_bad: { seq: number; problem: string } | null;
  at_ms: number;
  took_ms: number;
  by: string;
}

export class LedgerCheckup {
  private readonly app: App;
  /** The last one of this process. */
  last: Checked | null = null;

  constructor(app: App) {
    this.app = app;
  }

  async run(by: string): Promise<Checked> {
    const { env, store } = this.app.core;
    const began = env.elapsed();
    const { records, head, first_bad } = await checkLedgerOf(store, this.app.settings.data);
    const took_ms = env.elapsed() - began;
    this.last = { ok: first_bad === null, records, head, first_bad, at_ms: env.now(), took_ms, by };
    return this.last;
  }
}
