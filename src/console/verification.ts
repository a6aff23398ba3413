/** Verifies the ledger on request and remembers the result. */

import type { ServiceApp } from "../operations/app.ts";
import { verifyLedger } from "../operations/ledger-reader.ts";

interface Checked {
  ok: boolean;
  records: number;
  head: string;
  first_bad: { seq: number; problem: string } | null;
  at_ms: number;
  took_ms: number;
  by: string;
}

export class LedgerVerification {
  private readonly app: ServiceApp;
  /** The last verification that this process ran. */
  last: Checked | null = null;

  constructor(app: ServiceApp) {
    this.app = app;
  }

  async run(by: string): Promise<Checked> {
    const { env } = this.app.core;
    const began = env.elapsed();
    const { records, head, first_bad } = await verifyLedger(this.app);
    const took_ms = env.elapsed() - began;
    this.last = { ok: first_bad === null, records, head, first_bad, at_ms: env.now(), took_ms, by };
    return this.last;
  }
}
