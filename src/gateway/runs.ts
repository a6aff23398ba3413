/**
 * Which run a call belongs to. A named run is continued with the mode and scope it was opened with, or
 * opened under that name; otherwise a session has one of its own, which exists from its first call on.
 */

import type { App } from "../app/app.ts";
import { newRun, openRunUnit } from "../engine/open-run.ts";
import { conflict, forbidden, invalid, SvcError } from "../kernel/errors.ts";
import { Lru } from "../kernel/lru.ts";
import { mayRequest, type Principal } from "../model/roles.ts";
import { type Mode, RUN_ID, type RunDoc } from "../model/run.ts";

/** What a surface needs to know of a run; none of it ever changes. */
export interface BoundRun {
  readonly run_id: string;
  readonly mode: Mode;
  readonly permissions: ReadonlySet<string>;
  /** Makes sure that the run is stored. What is asked of the store right after it sees the run. */
  open(): Promise<void>;
}

/** A run that is stored with its first call. */
interface FreshRun extends BoundRun {
  /** Whether that call has come. */
  readonly begun: boolean;
}

interface KnownRun extends BoundRun {
  readonly principal: string;
}

const KNOWN_RUNS = 10_000;

export class Runs {
  private readonly app: App;
  private readonly known = new Lru<string, KnownRun>(KNOWN_RUNS);

  constructor(app: App) {
    this.app = app;
  }

  /** Continues the run, or opens it under this id. */
  async named(principal: Principal, run_id: string, given_as = "Svc-Run-Id"): Promise<BoundRun> {
    if (!RUN_ID.test(run_id)) {
      throw invalid(
        `${given_as}: up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit`,
      );
    }
    const known = this.known.get(run_id) ?? (await this.load(principal, run_id));
    if (known.principal !== principal.id) throw conflict(`run ${run_id} belongs to another principal`);
    return known;
  }

  private async load(principal: Principal, run_id: string): Promise<KnownRun> {
    const { store } = this.app.core;
    const found = await store.get("runs", run_id);
    const run = found ?? (await this.create(principal, run_id));
    const known: KnownRun = { ...facts(run), principal: run.principal, open: async () => {} };
    this.known.set(run_id, known);
    return known;
  }

  private async create(principal: Principal, run_id: string): Promise<RunDoc> {
    const { store } = this.app.core;
    try {
      return await store.transact(openRunUnit(this.describe(principal, run_id)));
    } catch (error) {
      // Somebody was faster; then it is theirs, or ours from another connection.
      const found =
        error instanceof SvcError && error.code === "conflict" ? await store.get("runs", run_id) : undefined;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** The run of a session, for whoever asks in it. Until its first call it is opened anew for a changed authority. */
  ofSession(): (principal: Principal) => BoundRun {
    let opened: { run: FreshRun; for: Principal } | null = null;
    return (principal) => {
      if (opened === null || (opened.for !== principal && !opened.run.begun))
        opened = { run: this.fresh(principal), for: principal };
      return opened.run;
    };
  }

  /** A run of its own for a session or a request; it is stored with its first call. */
  fresh(principal: Principal): FreshRun {
    const { app } = this;
    const run = this.describe(principal);
    const { run_id, actor, tenant, environment, salt } = run;
    let opening: Promise<void> | null = null;
    return {
      ...facts(run),
      get begun() {
        return opening !== null;
      },
      open() {
        opening ??= (async () => {
          // Known beforehand, so that the intent joins the same commit as the run it belongs to.
          app.runFacts.set(run_id, { run_id, principal: principal.id, actor, tenant, environment, salt });
          try {
            await app.core.store.transact(openRunUnit(run));
          } catch (error) {
            app.runFacts.delete(run_id);
            opening = null;
            throw error;
          }
        })();
        return opening;
      },
    };
  }

  /** Forgets a run that the store no longer has. */
  forget(run_id: string): void {
    this.known.delete(run_id);
    this.app.runFacts.delete(run_id);
  }

  private describe(principal: Principal, run_id?: string): RunDoc {
    const { core, settings } = this.app;
    const { mode } = settings;
    if (mode !== "enforce" && !principal.allow_observe) {
      throw forbidden(`this gateway runs in ${mode} mode, which needs a key with allow_observe`);
    }
    return newRun(core, principal, { run_id, mode, permissions: this.scopeOf(principal) });
  }

  /** What the configuration names, else all that is declared; never more than the key may ask for. */
  private scopeOf(principal: Principal): string[] {
    const { core, settings } = this.app;
    const declared = core.rules().manifests.permissions;
    const wanted = settings.permissions ?? declared;
    // A credential without caps may ask for all that is declared, and for nothing else.
    const caps = principal.max_permissions ?? declared;
    return wanted.filter((permission) => mayRequest({ max_permissions: caps }, permission));
  }
}

function facts(run: RunDoc): Pick<BoundRun, "run_id" | "mode" | "permissions"> {
  return { run_id: run.run_id, mode: run.mode, permissions: new Set(run.scope.permissions) };
}
