/**
 * Runs of principals without sessions. All calls of such a principal belong to one run until it is idle for a while, on
 * every gateway of the store and across restarts.
 */

import type { CallerPrincipal } from "../../govern/roles.ts";
import type { RunMode } from "../../govern/runs/run.ts";
import { valueHash } from "../../kernel/hash.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { claimRun, dropRunClaim, touchRunClaim } from "../../operations/runs/run-claims.ts";

/** Source of runs. */
interface Source<R> {
  /** Mode and permissions that a new run of this principal would get now. */
  terms(principal: CallerPrincipal): { mode: RunMode; permissions: string[] };
  /** The run reserved under this id. */
  claimed(principal: CallerPrincipal, run_id: string): Promise<R>;
}

interface Held<R> {
  run: R;
  /** Principal and manifests at the time of opening, compared by identity. */
  principal: CallerPrincipal;
  manifests: unknown;
  used_ms: number;
  noted_ms: number;
}

const KEPT = 10_000;
/** How often per idle period the store is updated while the run is in use. */
const NOTES = 8;

export class PrincipalRuns<R extends { readonly run_id: string }> {
  private readonly app: ServiceApp;
  private readonly runs: Source<R>;
  private readonly held = new LruMap<string, Held<R>>(KEPT);
  private readonly claiming = new Map<string, Promise<R>>();

  constructor(app: ServiceApp, runs: Source<R>) {
    this.app = app;
    this.runs = runs;
  }

  of(principal: CallerPrincipal): R | Promise<R> {
    const { core, settings } = this.app;
    const held = this.held.get(principal.id);
    const now = core.env.now();
    const same =
      held !== undefined && held.principal === principal && held.manifests === core.rules().manifests;
    if (!same || now - held.used_ms >= settings.runs.idle_ms) return this.claimOnce(principal);
    held.used_ms = now;
    if (now - held.noted_ms >= settings.runs.idle_ms / NOTES) this.note(principal, held, now);
    return held.run;
  }

  private claimOnce(principal: CallerPrincipal): Promise<R> {
    const under = this.claiming.get(principal.id);
    if (under !== undefined) return under;
    const claim = this.claim(principal).finally(() => this.claiming.delete(principal.id));
    this.claiming.set(principal.id, claim);
    return claim;
  }

  /** Claims the principal's current run, or a new one after an idle period or with a different scope. */
  private async claim(principal: CallerPrincipal): Promise<R> {
    const { core, settings } = this.app;
    const { mode, permissions } = this.runs.terms(principal);
    const scope = valueHash({ mode, permissions });
    const fresh = `run_${core.env.uuidv7()}`;
    const now = core.env.now();
    const { idle_ms } = settings.runs;
    const run_id = await claimRun(core, principal.id, { fresh, scope, now, idle_ms });
    const run = await this.runs.claimed(principal, run_id);
    const { manifests } = core.rules();
    this.held.set(principal.id, { run, principal, manifests, used_ms: now, noted_ms: now });
    return run;
  }

  /** Stores the last use without waiting. If that fails, another gateway may start a new run a little early. */
  private note(principal: CallerPrincipal, held: Held<R>, now: number): void {
    held.noted_ms = now;
    void touchRunClaim(this.app.core, principal.id, held.run.run_id, now).catch(() => {});
  }

  /** Drops a run that the store no longer has, so that the next call starts another. */
  async forget(principal: CallerPrincipal, run_id: string): Promise<void> {
    if (this.held.get(principal.id)?.run.run_id !== run_id) return;
    this.held.delete(principal.id);
    await dropRunClaim(this.app.core, principal.id, run_id);
  }
}
