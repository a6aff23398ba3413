/**
 * Which run a call belongs to. A named run is continued with the mode and scope it was opened with, or
 * opened under that name; otherwise a session has one of its own, which exists from its first call on, and a
 * client without sessions one for its principal.
 */
import type { App } from "../app/app.ts";
import { storeNamed } from "../app/operations/runs.ts";
import { newRun, openRunUnit } from "../engine/open-run.ts";
import { conflict, forbidden, invalid, SvcError } from "../kernel/errors.ts";
import { Lru } from "../kernel/lru.ts";
import { mayRequest, type Principal } from "../model/roles.ts";
import { type Mode, RUN_ID_FORM, type RunDoc } from "../model/run.ts";
import { PrincipalRuns } from "./principal-runs.ts";

/** What a surface needs to know of a run; none of it ever changes. */
export interface BoundRun {
  readonly run_id: string;
  readonly mode: Mode;
  readonly permissions: ReadonlySet<string>;
  /** Makes sure that the run is stored. What is asked of the store right after it sees the run. */
  open(): Promise<void>;
}

/** The run of whoever asks. */
export type RunOf = (principal: Principal) => BoundRun | Promise<BoundRun>;

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
  private readonly ofPrincipals: PrincipalRuns<BoundRun>;

  constructor(app: App) {
    this.app = app;
    this.ofPrincipals = new PrincipalRuns(app, this);
  }

  /** Where the calls of a session go that names no run; null where each call has its own. */
  ofSession(): RunOf | null {
    return this.app.settings.runs.by === "session" ? this.oneOfSession() : this.ofSessionless();
  }

  /** Where the calls of a client without sessions go that name no run. */
  ofSessionless(): RunOf | null {
    if (this.app.settings.runs.by === "call") return null;
    return (principal) => this.ofPrincipals.of(principal);
  }

  /** Continues the run, or opens it under this id. */
  async named(principal: Principal, run_id: string, given_as = "Svc-Run-Id"): Promise<BoundRun> {
    if (!RUN_ID_FORM.test(run_id)) {
      throw invalid(
        `${given_as}: up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit`,
      );
    }
    const known = this.known.get(run_id) ?? (await this.load(principal, run_id));
    if (known.principal !== principal.id)
      throw conflict("run_of_another", `run ${run_id} belongs to another principal`);
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
      return await storeNamed(store, this.describe(principal, run_id));
    } catch (error) {
      // Another connection was faster; then it is theirs, or ours from another connection.
      const found =
        error instanceof SvcError && error.code === "conflict" ? await store.get("runs", run_id) : undefined;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** The run of a session, for whoever asks in it. Until its first call it is opened anew for a changed authority. */
  private oneOfSession(): RunOf {
    let opened: { run: FreshRun; for: Principal } | null = null;
    return (principal) => {
      if (opened === null || (opened.for !== principal && !opened.run.begun))
        opened = { run: this.fresh(principal), for: principal };
      return opened.run;
    };
  }

  /** The run that was set aside under this id, opened by its first call unless another process was faster. */
  async claimed(principal: Principal, run_id: string): Promise<BoundRun> {
    const found = await this.app.core.store.get("runs", run_id);
    return found === undefined ? this.fresh(principal, run_id) : this.named(principal, run_id);
  }

  /** A run of its own for a session or a request; it is stored with its first call. */
  fresh(principal: Principal, set_aside?: string): FreshRun {
    const { app } = this;
    const run = this.describe(principal, set_aside);
    const { run_id, actor, tenant, environment, salt } = run;
    let opening: Promise<void> | null = null;
    return {
      ...facts(run),
      get begun() {
        return opening !== null;
      },
      open: () => {
        opening ??= (async () => {
          // Known beforehand, so that the intent joins the same commit as the run it belongs to.
          app.runFacts.set(run_id, { run_id, principal: principal.id, actor, tenant, environment, salt });
          try {
            await app.core.store.transact(openRunUnit(run));
          } catch (error) {
            app.runFacts.delete(run_id);
            if (set_aside !== undefined && (await this.isOpenFor(principal, run_id))) return;
            opening = null;
            throw error;
          }
        })();
        return opening;
      },
    };
  }

  private async isOpenFor({ id }: Principal, run_id: string): Promise<boolean> {
    return (await this.app.core.store.get("runs", run_id))?.principal === id;
  }

  /** Forgets a run that the store no longer has. */
  async forget(principal: Principal, run_id: string): Promise<void> {
    this.known.delete(run_id);
    this.app.runFacts.delete(run_id);
    await this.ofPrincipals.forget(principal, run_id);
  }

  /** Throws where this principal may not have a run here. */
  mayOpen(principal: Principal): void {
    this.describe(principal);
  }

  /** Under what a run of this principal would be opened now. */
  terms(principal: Principal): { mode: Mode; permissions: string[] } {
    return { mode: this.app.settings.mode, permissions: this.scopeOf(principal) };
  }

  private describe(principal: Principal, run_id?: string): RunDoc {
    const { core } = this.app;
    const { mode, permissions } = this.terms(principal);
    if (mode !== "enforce" && !principal.allow_observe) {
      throw forbidden(
        `this gateway runs in ${mode} mode, which needs a key with allow_observe`,
        "observe_not_allowed",
      );
    }
    return newRun(core, principal, { run_id, mode, permissions });
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
