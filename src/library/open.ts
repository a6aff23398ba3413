/** The service inside the caller's own process: same engine, same ledger, no server. */

import type { z } from "zod";
import type { ApproversGuard } from "../auth/approvers-guard.ts";
import { guardedCompensator } from "../auth/guarded-undo.ts";
import { loadSettings } from "../config/load.ts";
import { isPlanId } from "../govern/plans/plan.ts";
import type { CallerPrincipal } from "../govern/roles.ts";
import { isRunOwner } from "../govern/runs/load-run.ts";
import type { RunMode } from "../govern/runs/run.ts";
import { systemEnv } from "../kernel/env.ts";
import { forbiddenError, invalidError } from "../kernel/errors.ts";
import { assertJson } from "../kernel/json/json.ts";
import { readJsonOrText } from "../kernel/json/json-text-value.ts";
import type { ServiceApp } from "../operations/app.ts";
import {
  approveRequest,
  denyRequest,
  getApproval,
  withdrawRequest,
} from "../operations/approvals/approvals.ts";
import { readRun } from "../operations/pipeline/access.ts";
import { dispatchOperation } from "../operations/pipeline/dispatch.ts";
import { type IdentitySources, openIdentity } from "../operations/pipeline/identity.ts";
import type { ServiceOperation } from "../operations/pipeline/operation.ts";
import { proposePlan, withdrawPlan } from "../operations/plans.ts";
import { getOwnRollbackPlan, rollbackHere } from "../operations/rollback/rollback.ts";
import {
  submitIntent as intentOp,
  reportStepOutcome as outcomeOp,
  previewIntent,
} from "../operations/runs/intents-and-outcomes.ts";
import { getRun as getRunOp, openRun as openRunOp } from "../operations/runs/runs.ts";
import { giveRunTexts } from "../operations/runs/values.ts";
import { openApproversGuard } from "../operations/signing/approvers-guard.ts";
import { getSignatures, undoSignatures } from "../operations/signing/signatures.ts";
import type { TreeReport } from "../rollback/plan/report.ts";
import type { DrillDoc } from "../rules/undo-proof.ts";
import { openApp } from "../service/open-app.ts";
import { type ApprovalRequests, type DecideOptions, type ReadApproval, waitFor } from "./approvals.ts";
import { type DrillOptions, drillWith } from "./drill.ts";
import { guardedBy } from "./guarded.ts";
import { AgentRun } from "./run.ts";
import { type RollbackRequest, statusIn, toDependsOn, withReplayDetection } from "./transport.ts";

/** Inputs and storage of the embedded service. Each option has the meaning of its key in `svc.config.yaml`. */
export interface OpenOptions {
  /** File or directory of manifests, which describe the effect and the undo of each tool. */
  manifests?: string;
  /** Policy file. Without one, a call is allowed if manifests, permissions and halts allow it. */
  policy?: string;
  /** Default: the store that the data directory was created with, or `files` for a new directory. */
  store?: "files" | "sqlite" | "postgres";
  /** Data directory of a `files` or `sqlite` store. */
  data?: string;
  /** Database URL of a `postgres` store. */
  database_url?: string;
  /** Name of this installation (`production`, `test`). Policies, halts and drills can refer to it. */
  environment?: string;
  /** Approvers file. The library then verifies signed approvals itself, before each call that the file names. */
  approvers?: string;
  /** A `svc.config.yaml` file. The other options override it. */
  config?: string;
}

/** The agent of a run and the limits of its authority. */
export interface RunOptions {
  /** Name of the agent, for the ledger and for policies. */
  actor: string;
  /**
   * Manifest permissions of the run. Tools that need another permission are blocked. You cannot change the list later.
   */
  permissions: readonly string[];
  /** Your own id for the run, so that you can find it again. Default: a generated id. */
  run_id?: string;
  /** `enforce` (default) blocks calls. `observe` and `advise` let them pass and report what `enforce` would block. */
  mode?: RunMode;
  /** Your own run that opens this one. A child run shares its parent's limits, budgets, flows and given texts. */
  parent?: string;
  /** Purpose of the run, shown to the approvers of its calls. */
  reason?: string;
  /** Tenant of the run, on installations with tenants. */
  tenant?: string;
  /**
   * What people asked for, such as the user's prompt. Values in these texts do not count as foreign. Only their
   * fingerprints are kept. On a server, your key needs `may_give`.
   */
  given?: readonly string[];
}

/** The service inside this process. */
export interface EmbeddedSvc {
  /** Opens a run: a task of one agent whose calls are recorded and undone together. */
  run(options: RunOptions): Promise<AgentRun>;
  /** Tests undos with your functions, in an environment listed under `drills.environments`. */
  drill(options: DrillOptions): Promise<DrillDoc[]>;
  /** Returns an earlier run of this actor or key, so that the agent can continue it. */
  attach(run_id: string): Promise<AgentRun>;
  /** Approval requests: read, wait, decide. */
  readonly approvals: ApprovalRequests;
  /** Finishes the work in progress and releases the store. */
  close(): Promise<void>;
}

/**
 * Opens the service in this process, with the same engine and ledger as a server. Several processes of one machine can
 * open the same directory, and several machines the same database.
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
export async function openEmbedded(options: OpenOptions = {}): Promise<EmbeddedSvc> {
  const { database_url, ...rest } = options;
  const flags = { ...rest, ...(database_url === undefined ? {} : { "database-url": database_url }) };
  const settings = loadSettings({ flags, env: process.env, cwd: process.cwd() });
  const app = await openApp(settings, systemEnv);
  const guard = await openApproversGuard(app).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  const approvals = embeddedApprovals(app);
  return {
    run: (run) => libraryRun(app, run, guard),
    drill: (options) => drillWith(app, options, guard),
    attach: (run_id) => attach(app, run_id, guard),
    approvals,
    close: async () => {
      approvals.close();
      await app.close();
    },
  };
}

const agentOf = (id: string, name: string, tenant: string | null): CallerPrincipal => ({
  id,
  name,
  roles: ["agent"],
  groups: [],
  tenant,
  max_permissions: ["*"],
  allow_observe: true,
  may_give: true,
});

/** Opens a run of an embedded agent on a running service. */
export async function libraryRun(
  app: ServiceApp,
  options: RunOptions,
  guard: ApproversGuard | null = null,
): Promise<AgentRun> {
  const { actor, tenant, given, ...body } = options;
  const principal = agentOf(libraryId(actor), actor, tenant ?? null);
  const { run_id, scope_seal } = await asking(app, principal)(openRunOp, {
    ...body,
    permissions: [...body.permissions],
    ...(given === undefined ? {} : { given: [...given] }),
  });
  return embeddedRun({ app, principal, guard }, run_id, scope_seal);
}

const libraryId = (actor: string): string => `library:${actor}`;

async function attach(app: ServiceApp, run_id: string, guard: ApproversGuard | null): Promise<AgentRun> {
  const run = await readRun(app, run_id);
  const { principal, actor, tenant, scope } = run;
  // A run that belongs to an API key is not available to every process with access to the data.
  if (!isRunOwner(run, { id: libraryId(actor) }))
    throw forbiddenError(`run ${run_id} belongs to another principal`);
  return embeddedRun({ app, principal: agentOf(principal, actor, tenant), guard }, run_id, scope.seal);
}

type Ask = <I extends z.ZodType, O>(
  op: ServiceOperation<I, O>,
  input: z.input<I>,
  signal?: AbortSignal,
  replayed?: () => void,
) => Promise<O>;

function asking(app: ServiceApp, principal: CallerPrincipal): Ask {
  const never = new AbortController().signal;
  return async (op, input, signal = never, replayed = () => {}) => {
    assertJson(input, "input");
    return dispatchOperation(op, { app, principal, signal, reads_by: "library", replayed }, input);
  };
}

interface EmbeddedAgent {
  app: ServiceApp;
  principal: CallerPrincipal;
  guard: ApproversGuard | null;
}

function embeddedRun({ app, principal, guard }: EmbeddedAgent, run_id: string, seal: string): AgentRun {
  const call = asking(app, principal);
  const signaturesOf = (approval_id: string) => call(getSignatures, { approval_id });
  return new AgentRun(run_id, seal, {
    ...guardedBy(guard, run_id, signaturesOf),
    intent: ({ depends_on, ...intent }) =>
      withReplayDetection(intent.idempotency_key, (replayed) =>
        call(intentOp, { run_id, ...intent, ...toDependsOn(depends_on) }, undefined, replayed),
      ),
    status: async (step) => statusIn(await call(getRunOp, { run_id }), step),
    preview: ({ depends_on, idempotency_key: _, ...intent }) =>
      call(previewIntent, { run_id, ...intent, ...toDependsOn(depends_on) }),
    look: lookWith(call),
    propose: (plan) => call(proposePlan, { run_id, ...plan }),
    outcome: (step, outcome) => call(outcomeOp, { run_id, step, ...outcome }),
    withdraw: (id) =>
      isPlanId(id) ? call(withdrawPlan, { plan_id: id }) : call(withdrawRequest, { approval_id: id }),
    plan: () => call(getOwnRollbackPlan, { run_id }),
    give: async (texts) => (await call(giveRunTexts, { run_id, texts: [...texts] })).given,
    rollback: (request) => rollback({ app, principal, guard }, run_id, request),
  });
}

/** Rolls back with operator authority, in the name of the agent: the process that embeds the engine is its operator. */
function rollback(
  { app, principal: agent, guard }: EmbeddedAgent,
  run_id: string,
  { compensator, verifier, signal, overwrite: word, ...request }: RollbackRequest,
): Promise<TreeReport> {
  const { step: overwrite, ...rest } = word ?? {};
  const caller = {
    app,
    principal: { ...agent, roles: ["operator" as const] },
    signal: new AbortController().signal,
    undo: {
      compensator: guardedCompensator(
        () => guard,
        (run, step) => undoSignatures(app, run, step),
        compensator,
      ),
      reader: verifier ?? null,
      signal,
    },
  };
  return dispatchOperation(rollbackHere, caller, { run_id, ...request, overwrite, ...rest });
}

const lookWith =
  (call: Ask): ReadApproval =>
  async (approval_id, wait, signal) => {
    const approval = await call(getApproval, { approval_id, ...(wait === 0 ? {} : { wait }) }, signal);
    const { offer } = approval;
    return offer === undefined
      ? approval
      : { ...approval, offer: { ...offer, args: readJsonOrText(offer.args) } };
  };

/**
 * Approvals on the embedded engine. The host process can read every request. A decision needs the credential of an
 * approver from the key file or the identity provider.
 */
function embeddedApprovals(app: ServiceApp): ApprovalRequests & { close(): void } {
  let identity: Promise<IdentitySources> | undefined;
  const { settings, egress, log } = app;
  const known = () => {
    identity ??= openIdentity({ settings, env: app.core.env, egress, log, failed: () => {} });
    return identity;
  };
  const reader = asking(app, { ...agentOf("library:", "library", null), roles: ["auditor"] });
  const look = lookWith(reader);
  const decide =
    (op: typeof approveRequest) =>
    async (approval_id: string, { key, ...given }: DecideOptions = {}) => {
      if (key === undefined)
        throw invalidError("key: a decision needs the deciding person's own key or token");
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
    approve: decide(approveRequest),
    deny: decide(denyRequest),
    close: () => void identity?.then((open) => open.close()).catch(() => {}),
  };
}
