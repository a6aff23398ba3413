/** The service inside the caller's own process: same engine, same ledger, no server. */
import type { z } from "zod";
import type { App } from "../app/app.ts";
import { readRun } from "../app/door/access.ts";
import { type Identity, openIdentity } from "../app/door/identity.ts";
import type { Operation } from "../app/door/operation.ts";
import { perform } from "../app/door/perform.ts";
import { approve, deny, getApproval, withdraw } from "../app/operations/approvals.ts";
import { intent as intentOp, outcome as outcomeOp, previewIntent } from "../app/operations/journal.ts";
import { proposePlan, withdrawPlan } from "../app/operations/plans.ts";
import { planOwn, rollbackHere } from "../app/operations/rollback.ts";
import { getRun as getRunOp, openRun as openRunOp } from "../app/operations/runs.ts";
import { openApp } from "../app/wiring/open-app.ts";
import { loadSettings } from "../config/load.ts";
import { systemEnv } from "../kernel/env.ts";
import { forbidden, invalid } from "../kernel/errors.ts";
import { assertJson } from "../kernel/json.ts";
import { isPlanId } from "../model/plan.ts";
import type { DrillDoc } from "../model/proof.ts";
import type { Principal } from "../model/roles.ts";
import type { Mode } from "../model/run.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { type Approvals, type DecideOptions, type LookAtApproval, waitFor } from "./approvals.ts";
import { type DrillOptions, drillWith } from "./drill.ts";
import { Run } from "./run.ts";
import { dependingOn, type RollbackRequest, statusIn, tellingReplays } from "./transport.ts";

/** Where the engine finds what it goes by, and where it keeps what happened; each as in a `svc.config.yaml`. */
export interface OpenOptions {
  /** A file or a folder of manifests: what each tool does, and how it is undone. */
  manifests?: string;
  /** A policy file; without one whatever manifests, permissions and halts allow is allowed. */
  policy?: string;
  /** Default: what the data folder was made with, and `files` for a new one. */
  store?: "files" | "sqlite" | "postgres";
  /** The folder of a `files` or `sqlite` store. */
  data?: string;
  /** The database of a `postgres` store. */
  database_url?: string;
  /** The name of this installation (`production`, `test`), which policies, halts and drills may ask for. */
  environment?: string;
  /** A svc.config.yaml; the other options come before it. */
  config?: string;
}

/** Who acts, and what they may ask for at most. */
export interface RunOptions {
  /** The agent's name, on the ledger and in policies. */
  actor: string;
  /** Which permissions of the manifests the run has; a tool that needs another is blocked. Fixed for ever. */
  permissions: readonly string[];
  /** An id of your own, so that the run can be found again; a free one is made otherwise. */
  run_id?: string;
  /** `observe` and `advise` let calls pass and say what `enforce`, the default, would have blocked. */
  mode?: Mode;
  /** What the run is for, told to whoever decides on its calls. */
  reason?: string;
  /** The tenant that the run belongs to, where tenants are kept apart. */
  tenant?: string;
}

/** The service inside this process. */
export interface Svc {
  /** Begins a piece of work of an agent; everything it does hangs on it, and is undone with it. */
  run(options: RunOptions): Promise<Run>;
  /** Proves undos with the functions given here, in an environment under `drills.environments`. */
  drill(options: DrillOptions): Promise<DrillDoc[]>;
  /** A run that was opened before, by this actor or with this key, to go on with. */
  attach(run_id: string): Promise<Run>;
  /** What waits for a person: reading, waiting, deciding. */
  readonly approvals: Approvals;
  /** Ends what is under way and lets go of the store. */
  close(): Promise<void>;
}

/**
 * Opens the service in this process: the same engine and the same ledger as a server, without one. Several processes
 * of one machine may open the same folder, and several machines the same database.
 *
 * @example
 * ```ts
 * import { open } from "takeback";
 *
 * const svc = await open({ manifests: "manifests.yaml", policy: "policy.yaml", data: "data" });
 * const run = await svc.run({ actor: "billing-bot", permissions: ["payments.refund"], reason: "ticket 4711" });
 * await run.call(
 *   { tool: "payments.refund", args: { charge: "ch_1", amount: 45 }, reason: "the parcel never came" },
 *   () => payments.refund("ch_1", 45),
 * );
 * await svc.close();
 * ```
 */
export async function open(options: OpenOptions = {}): Promise<Svc> {
  const { database_url, ...rest } = options;
  const flags = { ...rest, ...(database_url === undefined ? {} : { "database-url": database_url }) };
  const settings = loadSettings({ flags, env: process.env, cwd: process.cwd() });
  const app = await openApp(settings, systemEnv);
  const approvals = embeddedApprovals(app);
  return {
    run: (run) => libraryRun(app, run),
    drill: (options) => drillWith(app, options),
    attach: (run_id) => attach(app, run_id),
    approvals,
    close: async () => {
      approvals.close();
      await app.close();
    },
  };
}

const agentOf = (id: string, name: string, tenant: string | null): Principal => ({
  id,
  name,
  roles: ["agent"],
  groups: [],
  tenant,
  max_permissions: ["*"],
  allow_observe: true,
});

/** A run of an embedded agent on a service that is open already. */
export async function libraryRun(app: App, options: RunOptions): Promise<Run> {
  const { actor, tenant, ...body } = options;
  const principal = agentOf(libraryId(actor), actor, tenant ?? null);
  const { run_id, scope_seal } = await asking(app, principal)(openRunOp, {
    ...body,
    permissions: [...body.permissions],
  });
  return embeddedRun(app, principal, run_id, scope_seal);
}

const libraryId = (actor: string): string => `library:${actor}`;

async function attach(app: App, run_id: string): Promise<Run> {
  const { principal, actor, tenant, scope } = await readRun(app, run_id);
  // A run of a principal that came with a key is not for whoever happens to hold the data.
  if (principal !== libraryId(actor)) throw forbidden(`run ${run_id} belongs to another principal`);
  return embeddedRun(app, agentOf(principal, actor, tenant), run_id, scope.seal);
}

type Ask = <I extends z.ZodType, O>(
  op: Operation<I, O>,
  input: z.input<I>,
  signal?: AbortSignal,
  replayed?: () => void,
) => Promise<O>;

function asking(app: App, principal: Principal): Ask {
  const never = new AbortController().signal;
  return async (op, input, signal = never, replayed = () => {}) => {
    assertJson(input, "input");
    return perform(op, { app, principal, signal, reads_by: "library", replayed }, input);
  };
}

function embeddedRun(app: App, principal: Principal, run_id: string, seal: string): Run {
  const call = asking(app, principal);
  return new Run(run_id, seal, {
    intent: ({ depends_on, ...intent }) =>
      tellingReplays(intent.idempotency_key, (replayed) =>
        call(intentOp, { run_id, ...intent, ...dependingOn(depends_on) }, undefined, replayed),
      ),
    status: async (step) => statusIn(await call(getRunOp, { run_id }), step),
    preview: ({ depends_on, idempotency_key: _, ...intent }) =>
      call(previewIntent, { run_id, ...intent, ...dependingOn(depends_on) }),
    look: lookWith(call),
    propose: (plan) => call(proposePlan, { run_id, ...plan }),
    outcome: (step, outcome) => call(outcomeOp, { run_id, step, ...outcome }),
    withdraw: (id) =>
      isPlanId(id) ? call(withdrawPlan, { plan_id: id }) : call(withdraw, { approval_id: id }),
    plan: () => call(planOwn, { run_id }),
    rollback: (request) => rollback(app, principal, run_id, request),
  });
}

/** Undoing is the word of whoever runs the engine, in the name of the agent that it runs for. */
function rollback(
  app: App,
  agent: Principal,
  run_id: string,
  { compensator, verifier, signal, overwrite: word, ...request }: RollbackRequest,
): Promise<RollbackReport> {
  const { step: overwrite, ...rest } = word ?? {};
  const caller = {
    app,
    principal: { ...agent, roles: ["operator" as const] },
    signal: new AbortController().signal,
    undo: { compensator, reader: verifier ?? null, signal },
  };
  return perform(rollbackHere, caller, { run_id, ...request, overwrite, ...rest });
}

const lookWith =
  (call: Ask): LookAtApproval =>
  (approval_id, wait, signal) =>
    call(getApproval, { approval_id, ...(wait === 0 ? {} : { wait }) }, signal);

/** Whoever runs the engine may read; deciding takes the key of a person whom the key file or the issuer knows. */
function embeddedApprovals(app: App): Approvals & { close(): void } {
  let identity: Promise<Identity> | undefined;
  const { settings, egress, log } = app;
  const known = () => {
    identity ??= openIdentity({ settings, env: app.core.env, egress, log, failed: () => {} });
    return identity;
  };
  const reader = asking(app, { ...agentOf("library:", "library", null), roles: ["auditor"] });
  const look = lookWith(reader);
  const decide =
    (op: typeof approve) =>
    async (approval_id: string, { key, ...given }: DecideOptions = {}) => {
      if (key === undefined) throw invalid("key: a decision needs the deciding person's own key or token");
      const { auth, today } = await known();
      const { principal } = await auth.authenticateToken(key);
      return asking({ ...app, core: { ...app.core, today }, today }, principal)(op, {
        approval_id,
        ...given,
      });
    };
  return {
    get: (id) => look(id, 0),
    wait: (id, how) => waitFor(look, id, how),
    approve: decide(approve),
    deny: decide(deny),
    close: () => void identity?.then((open) => open.close()).catch(() => {}),
  };
}
