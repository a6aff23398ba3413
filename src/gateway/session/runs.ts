/**
 * Decides which run a call belongs to. A named run continues with its original mode and scope, or is opened under that
 * name. Otherwise a session has one run, stored with its first call, and a client without sessions has one run for its
 * principal.
 */

import { type CallerPrincipal, canRequestPermission } from "../../govern/roles.ts";
import { isRunOwner } from "../../govern/runs/load-run.ts";
import { newRun } from "../../govern/runs/open-run.ts";
import { RUN_ID_FORM, type RunDoc, type RunMode } from "../../govern/runs/run.ts";
import { conflictError, forbiddenError, invalidError, SvcError } from "../../kernel/errors.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { findRun } from "../../operations/documents.ts";
import { createStoredRun, storeRun } from "../../operations/runs/runs.ts";
import { PrincipalRuns } from "./principal-runs.ts";

/** Immutable facts of a run that a surface needs. */
export interface BoundRun {
  readonly run_id: string;
  readonly mode: RunMode;
  readonly permissions: ReadonlySet<string>;
  /** Stores the run if necessary. Store requests made right after this call see the run. */
  open(): Promise<void>;
}

/** Returns the run of a principal. */
export type RunOf = (principal: CallerPrincipal) => BoundRun | Promise<BoundRun>;

/** A run that is stored with its first call. */
interface FreshRun extends BoundRun {
  /** Whether the first call has arrived. */
  readonly begun: boolean;
}

interface KnownRun extends BoundRun {
  readonly principal: string;
}

const KNOWN_RUNS = 10_000;

export class GatewayRuns {
  private readonly app: ServiceApp;
  private readonly known = new LruMap<string, KnownRun>(KNOWN_RUNS);
  private readonly ofPrincipals: PrincipalRuns<BoundRun>;

  constructor(app: ServiceApp) {
    this.app = app;
    this.ofPrincipals = new PrincipalRuns(app, this);
  }

  /** Run of a session's unnamed calls. Null if each call gets a new run. */
  ofSession(): RunOf | null {
    return this.app.settings.runs.by === "session" ? this.oneOfSession() : this.ofSessionless();
  }

  /** Run of the unnamed calls of a client without sessions. */
  ofSessionless(): RunOf | null {
    if (this.app.settings.runs.by === "call") return null;
    return (principal) => this.ofPrincipals.of(principal);
  }

  /** Continues the run, or opens it under this id. */
  async named(principal: CallerPrincipal, run_id: string, given_as = "Svc-Run-Id"): Promise<BoundRun> {
    if (!RUN_ID_FORM.test(run_id)) {
      throw invalidError(
        `${given_as}: up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit`,
      );
    }
    const known = this.known.get(run_id) ?? (await this.load(principal, run_id));
    if (!isRunOwner(known, principal))
      throw conflictError("run_of_another", `run ${run_id} belongs to another principal`);
    return known;
  }

  private async load(principal: CallerPrincipal, run_id: string): Promise<KnownRun> {
    const found = await findRun(this.app, run_id);
    const run = found ?? (await this.create(principal, run_id));
    const known: KnownRun = { ...facts(run), principal: run.principal, open: async () => {} };
    this.known.set(run_id, known);
    return known;
  }

  private async create(principal: CallerPrincipal, run_id: string): Promise<RunDoc> {
    try {
      return await createStoredRun(this.app.core, this.describe(principal, run_id));
    } catch (error) {
      // Another connection opened the run first, for this principal or another.
      const found =
        error instanceof SvcError && error.code === "conflict" ? await findRun(this.app, run_id) : undefined;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** The run of a session. A change of authority before the first call opens a new run. */
  private oneOfSession(): RunOf {
    let opened: { run: FreshRun; for: CallerPrincipal } | null = null;
    return (principal) => {
      if (opened === null || (opened.for !== principal && !opened.run.begun))
        opened = { run: this.fresh(principal), for: principal };
      return opened.run;
    };
  }

  /** The run reserved under this id. Its first call opens it unless another process already did. */
  async claimed(principal: CallerPrincipal, run_id: string): Promise<BoundRun> {
    const found = await findRun(this.app, run_id);
    return found === undefined ? this.fresh(principal, { set_aside: run_id }) : this.named(principal, run_id);
  }

  /** A new run for a session or a request, stored with its first call. */
  fresh(principal: CallerPrincipal, given: { set_aside?: string; sandbox?: string } = {}): FreshRun {
    const { app } = this;
    const { set_aside, sandbox } = given;
    const run = { ...this.describe(principal, set_aside), ...(sandbox === undefined ? {} : { sandbox }) };
    const { run_id, actor, tenant, environment, salt } = run;
    let opening: Promise<void> | null = null;
    return {
      ...facts(run),
      get begun() {
        return opening !== null;
      },
      open: () => {
        opening ??= (async () => {
          // Register the facts first, so that the intent can join the commit of its run.
          app.runFacts.set(run_id, { run_id, principal: principal.id, actor, tenant, environment, salt });
          try {
            await storeRun(app.core, run);
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

  private async isOpenFor(principal: CallerPrincipal, run_id: string): Promise<boolean> {
    const run = await findRun(this.app, run_id);
    return run !== undefined && isRunOwner(run, principal);
  }

  /** Forgets a run that the store no longer has. */
  async forget(principal: CallerPrincipal, run_id: string): Promise<void> {
    this.known.delete(run_id);
    this.app.runFacts.delete(run_id);
    await this.ofPrincipals.forget(principal, run_id);
  }

  /** Throws if this principal cannot open a run here. */
  mayOpen(principal: CallerPrincipal): void {
    this.describe(principal);
  }

  /** Mode and permissions that a new run of this principal would get now. */
  terms(principal: CallerPrincipal): { mode: RunMode; permissions: string[] } {
    return { mode: this.app.settings.mode, permissions: this.scopeOf(principal) };
  }

  private describe(principal: CallerPrincipal, run_id?: string): RunDoc {
    const { core } = this.app;
    const { mode, permissions } = this.terms(principal);
    if (mode !== "enforce" && !principal.allow_observe) {
      throw forbiddenError(
        `this gateway runs in ${mode} mode, which needs a key with allow_observe`,
        "observe_not_allowed",
      );
    }
    return newRun(core, principal, { run_id, mode, permissions });
  }

  /** The configured permissions, or else all declared ones, limited by the cap of the key. */
  private scopeOf(principal: CallerPrincipal): string[] {
    const { core, settings } = this.app;
    const declared = core.rules().manifests.permissions;
    const wanted = settings.permissions ?? declared;
    // A credential without caps can request exactly the declared permissions.
    const caps = principal.max_permissions ?? declared;
    return wanted.filter((permission) => canRequestPermission({ max_permissions: caps }, permission));
  }
}

function facts(run: RunDoc): Pick<BoundRun, "run_id" | "mode" | "permissions"> {
  return { run_id: run.run_id, mode: run.mode, permissions: new Set(run.scope.permissions) };
}
