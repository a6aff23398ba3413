/** Client for a remote server, with the same interface as the embedded engine. */
import { randomUUID } from "node:crypto";
import { ApproversGuard } from "../auth/approvers-guard.ts";
import { guardedCompensator } from "../auth/guarded-undo.ts";
import { stepKey } from "../govern/document-keys.ts";
import { isPlanId } from "../govern/plans/plan.ts";
import { createOperationsClient, type OperationsClient } from "../http/api/operations-client.ts";
import { systemEnv } from "../kernel/env.ts";
import { invalidError, SvcError } from "../kernel/errors.ts";
import {
  approveRequest,
  denyRequest,
  getApproval,
  withdrawRequest,
} from "../operations/approvals/approvals.ts";
import { proposePlan, withdrawPlan } from "../operations/plans.ts";
import { getRollbackPlan as planOp } from "../operations/rollback/rollback.ts";
import {
  submitIntent as intentOp,
  reportStepOutcome as outcomeOp,
  previewIntent,
} from "../operations/runs/intents-and-outcomes.ts";
import { getRun as getRunOp, openRun as openRunOp } from "../operations/runs/runs.ts";
import { giveRunTexts } from "../operations/runs/values.ts";
import { getSignatures } from "../operations/signing/signatures.ts";
import { rollBackInOrder } from "../rollback/plan/multi-run.ts";
import type { RollbackPlan } from "../rollback/plan/plan.ts";
import type { RollbackReport, TreeReport } from "../rollback/plan/report.ts";
import type { OverwriteDecision } from "../rollback/ports.ts";
import type { TreePlan } from "../rollback/tree/plan-tree.ts";
import { executeOnBackend } from "../rollback/undo/execute.ts";
import { type ApprovalRequests, type DecideOptions, type ReadApproval, waitFor } from "./approvals.ts";
import { guardedBy } from "./guarded.ts";
import type { EmbeddedSvc, RunOptions } from "./open.ts";
import { RemoteRollbackBackend } from "./remote-rollback-backend.ts";
import { trimOutcome, unsendableReason } from "./request-size.ts";
import { retryOnQuota } from "./retry.ts";
import { AgentRun } from "./run.ts";
import { type RollbackRequest, statusIn, toDependsOn, withReplayDetection } from "./transport.ts";

/** Server and credential of a connection. */
export interface ConnectOptions {
  /** Base URL such as `http://127.0.0.1:8787`, without `/v1`. */
  url: string;
  /** An API key, or a token of the identity provider that the server trusts. */
  key: string;
  /** Timeout of one request in milliseconds. */
  timeout_ms?: number;
  /**
   * Approvers file on this machine. The library then verifies signed approvals itself, before each call that the file
   * names. Used approvals are kept in the directory `<file>.used`.
   */
  approvers?: string;
}

/** A remote server. You can omit `actor`, because the server uses the name of your key. Drills run on the server. */
export interface RemoteSvc extends Omit<EmbeddedSvc, "run" | "drill"> {
  run(options: Omit<RunOptions, "actor" | "tenant"> & { actor?: string }): Promise<AgentRun>;
}

const ATTEMPTS = 4;
/** Codes of a request whose answer may be lost. The server may have carried it out. */
const LOST = new Set(["unavailable", "delivery_failed"]);

/**
 * Connects to a server and offers the same methods as {@link open}. A request whose answer was lost is sent again with
 * the same idempotency key, so nothing is recorded twice.
 *
 * @example
 * ```ts
 * import { connect } from "takeback";
 *
 * const svc = await connect({ url: "http://127.0.0.1:8787", key: process.env.SVC_KEY });
 * const run = await svc.run({ permissions: ["payments.refund"], reason: "ticket 4711" });
 * const { decision, reasons } = await run.preview({
 *   tool: "payments.refund",
 *   args: { charge: "ch_2", amount: 900 },
 *   reason: "the whole order was returned",
 * });
 * console.log(decision, reasons[0]); // needs_approval refunds over 500 need a person
 * await svc.close();
 * ```
 */
export async function connectToServer(options: ConnectOptions): Promise<RemoteSvc> {
  const guard = options.approvers === undefined ? null : await openGuard(options.approvers);
  const client = createOperationsClient({ ...options, stream: true });
  return {
    async run({ actor: _actor, permissions, given, ...body }) {
      const opened = await client.perform(openRunOp, {
        ...body,
        permissions: [...permissions],
        ...(given === undefined ? {} : { given: [...given] }),
      });
      return remoteRun({ client, guard }, opened.run_id, opened.scope_seal);
    },
    async attach(run_id) {
      const { scope } = await client.perform(getRunOp, { run_id });
      return remoteRun({ client, guard }, run_id, scope.seal);
    },
    approvals: remoteApprovals(client, options),
    close: () => client.close(),
  };
}

const lookFrom =
  (client: OperationsClient): ReadApproval =>
  (approval_id, wait, signal) =>
    client.perform(getApproval, { approval_id, ...(wait === 0 ? {} : { wait }) }, signal);

function remoteApprovals(client: OperationsClient, options: ConnectOptions): ApprovalRequests {
  const look = lookFrom(client);
  /** Uses a separate client for a decision that carries its own credential. */
  const decide =
    (op: typeof approveRequest) =>
    async (approval_id: string, { key, ...given }: DecideOptions = {}) => {
      if (key === undefined) return client.perform(op, { approval_id, ...given });
      const own = createOperationsClient({ ...options, key });
      try {
        return await own.perform(op, { approval_id, ...given });
      } finally {
        await own.close();
      }
    };
  return {
    get: (id) => look(id, 0),
    wait: (id, how) => waitFor(look, id, how),
    approve: decide(approveRequest),
    deny: decide(denyRequest),
  };
}

function openGuard(file: string): Promise<ApproversGuard> {
  const warn = (message: string, fields?: Record<string, unknown>) =>
    process.emitWarning(`${message}: ${JSON.stringify(fields ?? {})}`);
  return ApproversGuard.open({ file, used: `${file}.used`, env: systemEnv, warn });
}

interface RemoteAgent {
  client: OperationsClient;
  guard: ApproversGuard | null;
}

function remoteRun({ client, guard }: RemoteAgent, run_id: string, seal: string): AgentRun {
  return new AgentRun(run_id, seal, {
    ...guardedBy(guard, run_id, (approval_id) => client.perform(getSignatures, { approval_id })),
    look: lookFrom(client),
    propose: (plan) => client.perform(proposePlan, { run_id, ...plan }),
    preview: ({ depends_on, idempotency_key: _, ...intent }) =>
      client.perform(previewIntent, { run_id, ...intent, ...toDependsOn(depends_on) }),
    status: async (step) => statusIn(await client.perform(getRunOp, { run_id }), step),
    intent: ({ depends_on, idempotency_key: own, ...intent }) =>
      surely((key) =>
        withReplayDetection(own, (replayed) =>
          client.perform(
            intentOp,
            { run_id, idempotency_key: own ?? key, ...intent, ...toDependsOn(depends_on) },
            undefined,
            replayed,
          ),
        ),
      ),
    outcome: (step, outcome) =>
      surely((idempotency_key) =>
        retryOnQuota(() => client.perform(outcomeOp, { run_id, step, idempotency_key, ...outcome })),
      ),
    fit: { untellable: unsendableReason, fitting: trimOutcome },
    withdraw: (id) =>
      isPlanId(id)
        ? client.perform(withdrawPlan, { plan_id: id })
        : client.perform(withdrawRequest, { approval_id: id }),
    give: async (texts) => (await client.perform(giveRunTexts, { run_id, texts: [...texts] })).given,
    plan: () => client.perform(planOp, { run_id }) as Promise<RollbackPlan>,
    rollback: (request) => remoteRollback({ client, guard }, run_id, request),
  });
}

/** Retries a request with the same idempotency key, so the server replays its first answer. */
async function surely<T>(send: (idempotency_key: string) => Promise<T>): Promise<T> {
  const key = randomUUID();
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(key);
    } catch (error) {
      const isFinal = error instanceof SvcError && !LOST.has(error.code);
      if (isFinal || attempt === ATTEMPTS) throw error;
      await systemEnv.sleep(100 * 2 ** attempt);
    }
  }
}

async function remoteRollback(
  { client, guard }: RemoteAgent,
  run_id: string,
  { verifier, approve_compensations, overwrite, children, ...work }: RollbackRequest,
): Promise<TreeReport> {
  if (approve_compensations)
    throw invalidError(
      "approve_compensations: a remote worker cannot approve; use POST /v1/runs/{id}/rollback or svc rollback",
    );
  const approvals = new Map<string, string>();
  const compensator = guardedCompensator(
    () => guard,
    async (id, step) => {
      const approval_id = approvals.get(stepKey(id, step));
      return approval_id === undefined ? undefined : client.perform(getSignatures, { approval_id });
    },
    work.compensator,
  );
  const backendOf: BackendOf = (id, how) => {
    const onApproval = (step: number, approval_id: string) => approvals.set(stepKey(id, step), approval_id);
    return new RemoteRollbackBackend(client, id, { ...how, onApproval });
  };
  const options = { ...work, compensator, reader: verifier ?? null };
  if (children === true) {
    if (overwrite !== undefined)
      throw invalidError("overwrite: names a step of this run alone; omit children");
    return remoteTreeRollback(client, run_id, backendOf, options);
  }
  return executeOnBackend(backendOf(run_id, { overwrite }), systemEnv, options);
}

type BackendOf = (
  run_id: string,
  how: { overwrite?: OverwriteDecision | undefined; places?: ReadonlyMap<number, number> | undefined },
) => RemoteRollbackBackend;

/** The runs and the order of their undos come from the server's plan. */
async function remoteTreeRollback(
  client: OperationsClient,
  run_id: string,
  backendOf: BackendOf,
  options: Parameters<typeof executeOnBackend>[2],
): Promise<TreeReport> {
  const plan = (await retryOnQuota(() => client.perform(planOp, { run_id, children: true }))) as TreePlan;
  const places = new Map([plan, ...(plan.children ?? [])].map((one) => [one.run_id, placesOf(one)]));
  const order = [...places].map(([id, calls]) => ({
    run_id: id,
    newest_seq: Math.max(-1, ...calls.values()),
  }));
  const reports = new Map<string, RollbackReport>();
  await rollBackInOrder(order, async (id, turn) => {
    const backend = backendOf(id, { places: places.get(id) });
    reports.set(id, await executeOnBackend(backend, systemEnv, { ...options, turn }));
  });
  const complete = [...reports.values()].every((report) => report.complete);
  const children = (plan.children ?? []).map(({ run_id: id }) => ({ ...reports.get(id)!, run_id: id }));
  return { ...reports.get(run_id)!, children, complete };
}

function placesOf({ actions }: RollbackPlan): Map<number, number> {
  return new Map(
    actions.flatMap((action) =>
      action.kind === "compensate" && action.seq !== undefined ? [[action.step, action.seq]] : [],
    ),
  );
}
