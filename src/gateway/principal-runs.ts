/**
 * The run of a principal that has no session to carry one: all its calls are one run until it rests for a while,
 * whichever gateway of the store they reach and whether that gateway was started anew meanwhile.
 */
import type { App } from "../app/app.ts";
import { valueHash } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import { Lru } from "../kernel/lru.ts";
import type { Principal } from "../model/roles.ts";
import type { Mode } from "../model/run.ts";

/** Where runs come from. */
interface Source<R> {
  /** Under what a run of this principal would be opened now. */
  terms(principal: Principal): { mode: Mode; permissions: string[] };
  /** The run that was set aside under this id. */
  claimed(principal: Principal, run_id: string): Promise<R>;
}

/** What is kept in the store of it. */
interface Claim {
  run_id: string;
  /** Over mode and permissions: what may be asked for has changed where it is another one. */
  scope: string;
  used_ms: number;
}

interface Held<R> {
  run: R;
  /** What it was opened under; compared by identity. */
  principal: Principal;
  manifests: unknown;
  used_ms: number;
  noted_ms: number;
}

const KEPT = 10_000;
/** How often in a rest's length the store is told that the run is in use. */
const NOTES = 8;

export class PrincipalRuns<R extends { readonly run_id: string }> {
  private readonly app: App;
  private readonly runs: Source<R>;
  private readonly held = new Lru<string, Held<R>>(KEPT);
  private readonly claiming = new Map<string, Promise<R>>();

  constructor(app: App, runs: Source<R>) {
    this.app = app;
    this.runs = runs;
  }

  of(principal: Principal): R | Promise<R> {
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

  private claimOnce(principal: Principal): Promise<R> {
    const under = this.claiming.get(principal.id);
    if (under !== undefined) return under;
    const claim = this.claim(principal).finally(() => this.claiming.delete(principal.id));
    this.claiming.set(principal.id, claim);
    return claim;
  }

  /** Takes the run that the principal has, or a new one after a rest or under another scope. */
  private async claim(principal: Principal): Promise<R> {
    const { core, settings } = this.app;
    const { mode, permissions } = this.runs.terms(principal);
    const scope = valueHash({ mode, permissions });
    const fresh = `run_${core.env.uuidv7()}`;
    const now = core.env.now();
    const key = keyOf(principal);
    const run_id = await core.store.transact({
      needs: [["meta", key]],
      run(tx) {
        const found = tx.get("meta", key) as unknown as Claim | undefined;
        const goes_on = found?.scope === scope && now - found.used_ms < settings.runs.idle_ms;
        const next: Claim = { run_id: goes_on ? found.run_id : fresh, scope, used_ms: now };
        tx.put("meta", key, next as unknown as Json);
        return next.run_id;
      },
    });
    const run = await this.runs.claimed(principal, run_id);
    const { manifests } = core.rules();
    this.held.set(principal.id, { run, principal, manifests, used_ms: now, noted_ms: now });
    return run;
  }

  /** Not waited for: at worst another gateway begins a new run a little early. */
  private note(principal: Principal, held: Held<R>, now: number): void {
    held.noted_ms = now;
    const key = keyOf(principal);
    void this.app.core.store
      .transact({
        needs: [["meta", key]],
        run(tx) {
          const found = tx.get("meta", key) as unknown as Claim | undefined;
          if (found?.run_id === held.run.run_id)
            tx.put("meta", key, { ...found, used_ms: now } as unknown as Json);
        },
      })
      .catch(() => {});
  }

  /** The store no longer has the run: the next call begins another. */
  async forget(principal: Principal, run_id: string): Promise<void> {
    if (this.held.get(principal.id)?.run.run_id !== run_id) return;
    this.held.delete(principal.id);
    const key = keyOf(principal);
    await this.app.core.store.transact({
      needs: [["meta", key]],
      run(tx) {
        const found = tx.get("meta", key) as unknown as Claim | undefined;
        if (found?.run_id === run_id) tx.delete("meta", key);
      },
    });
  }
}

function keyOf({ id }: Principal): string {
  return `gateway-run/${id}`;
}
