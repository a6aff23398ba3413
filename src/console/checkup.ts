/** Verifying the ledger when somebody asks, one verification at a time, and remembering what came of it. */
import type { Core } from "../engine/core.ts";
import { verifyStoreLedger } from "../evidence/verify-ledger.ts";

export interface Checked {
  ok: boolean;
  records: number;
  head: string;
  first_bad: { seq: number; problem: string } | null;
  at_ms: number;
  took_ms: number;
  by: string;
}

export class LedgerCheckup {
  private readonly core: Core;
  private running: Promise<Checked> | null = null;
  /** The last one of this process. */
  last: Checked | null = null;

  constructor(core: Core) {
    this.core = core;
  }

  run(by: string): Promise<Checked> {
    this.running ??= this.check(by).finally(() => {
      this.running = null;
    });
    return this.running;
  }

  private async check(by: string): Promise<Checked> {
    const { env, store } = this.core;
    const began = env.elapsed();
    const { records, head, first_bad } = await verifyStoreLedger(store);
    const took_ms = env.elapsed() - began;
    this.last = { ok: first_bad === null, records, head, first_bad, at_ms: env.now(), took_ms, by };
    return this.last;
  }
}
