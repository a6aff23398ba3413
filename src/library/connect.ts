/** The same client shape against a remote server. */
import { randomUUID } from "node:crypto";
import { type Client, createClient } from "../api/client.ts";
import { approve, deny, getApproval, withdraw } from "../app/operations/approvals.ts";
import { intent as intentOp, outcome as outcomeOp, previewIntent } from "../app/operations/journal.ts";
import { proposePlan, withdrawPlan } from "../app/operations/plans.ts";
import { plan as planOp } from "../app/operations/rollback.ts";
import { getRun as getRunOp, openRun as openRunOp } from "../app/operations/runs.ts";
import { systemEnv } from "../kernel/env.ts";
import { invalid, SvcError } from "../kernel/errors.ts";
import { isPlanId } from "../model/plan.ts";
import { workOn } from "../rollback/execute.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { type Approvals, type DecideOptions, type LookAtApproval, waitFor } from "./approvals.ts";
import { fitting, untellable } from "./fitting.ts";
import type { RunOptions, Svc } from "./open.ts";
import { patiently } from "./patience.ts";
import { RemoteDesk } from "./remote-desk.ts";
import { Run } from "./run.ts";
import { dependingOn, type RollbackRequest, statusIn, tellingReplays } from "./transport.ts";

/** The server, and who calls. */
export interface ConnectOptions {
  /** As `http://127.0.0.1:8787`, without `/v1`. */
  url: string;
  /** An API key or a token of the issuer that the server trusts. */
  key: string;
  /** How long one request may take. */
  timeout_ms?: number;
}

/** A server, from here. `actor` is the key's own name there, so it may be left out; drills are made on the server. */
export interface RemoteSvc extends Omit<Svc, "run" | "drill"> {
  run(options: Omit<RunOptions, "actor" | "tenant"> & { actor?: string }): Promise<Run>;
}

const ATTEMPTS = 3;

/**
 * The same as {@link open}, against a server. Lost answers are asked for again under the same key, so that nothing is
 * recorded twice.
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
export async function connect(options: ConnectOptions): Promise<RemoteSvc> {
  const client = createClient(options);
  return {
    async run({ actor: _actor, permissions, ...body }) {
      const opened = await client.perform(openRunOp, { ...body, permissions: [...permissions] });
      return remoteRun(client, opened.run_id, opened.scope_seal);
    },
    async attach(run_id) {
      const { scope } = await client.perform(getRunOp, { run_id });
      return remoteRun(client, run_id, scope.seal);
    },
    approvals: remoteApprovals(client, options),
    close: () => client.close(),
  };
}

const lookFrom =
  (client: Client): LookAtApproval =>
  (approval_id, wait, signal) =>
    client.perform(getApproval, { approval_id, ...(wait === 0 ? {} : { wait }) }, signal);

function remoteApprovals(client: Client, options: ConnectOptions): Approvals {
  const look = lookFrom(client);
  /** With a credential of one's own for this one decision. */
  const decide =
    (op: typeof approve) =>
    async (approval_id: string, { key, ...given }: DecideOptions = {}) => {
      if (key === undefined) return client.perform(op, { approval_id, ...given });
      const own = createClient({ ...options, key });
      try {
        return await own.perform(op, { approval_id, ...given });
      } finally {
        await own.close();
      }
    };
  return {
    get: (id) => look(id, 0),
    wait: (id, how) => waitFor(look, id, how),
    approve: decide(approve),
    deny: decide(deny),
  };
}

function remoteRun(client: Client, run_id: string, seal: string): Run {
  return new Run(run_id, seal, {
    look: lookFrom(client),
    propose: (plan) => client.perform(proposePlan, { run_id, ...plan }),
    preview: ({ depends_on, idempotency_key: _, ...intent }) =>
      client.perform(previewIntent, { run_id, ...intent, ...dependingOn(depends_on) }),
    status: async (step) => statusIn(await client.perform(getRunOp, { run_id }), step),
    intent: ({ depends_on, idempotency_key: own, ...intent }) =>
      surely((key) =>
        tellingReplays(own, (replayed) =>
          client.perform(
            intentOp,
            { run_id, idempotency_key: own ?? key, ...intent, ...dependingOn(depends_on) },
            undefined,
            replayed,
          ),
        ),
      ),
    outcome: (step, outcome) =>
      surely((idempotency_key) =>
        patiently(() => client.perform(outcomeOp, { run_id, step, idempotency_key, ...outcome })),
      ),
    fit: { untellable, fitting },
    withdraw: (id) =>
      isPlanId(id)
        ? client.perform(withdrawPlan, { plan_id: id })
        : client.perform(withdraw, { approval_id: id }),
    plan: () => client.perform(planOp, { run_id }) as Promise<RollbackPlan>,
    rollback: (request) => remoteRollback(client, run_id, request),
  });
}

/** What carries a key of its own may be sent again: the server then answers as the first time. */
async function surely<T>(send: (idempotency_key: string) => Promise<T>): Promise<T> {
  const key = randomUUID();
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(key);
    } catch (error) {
      const final = error instanceof SvcError && error.code !== "unavailable";
      if (final || attempt === ATTEMPTS) throw error;
    }
  }
}

async function remoteRollback(
  client: Client,
  run_id: string,
  { verifier, approve_compensations, overwrite, ...work }: RollbackRequest,
): Promise<RollbackReport> {
  if (approve_compensations)
    throw invalid(
      "approve_compensations: a remote worker cannot approve; use POST /v1/runs/{id}/rollback or svc rollback",
    );
  return workOn(new RemoteDesk(client, run_id, overwrite), systemEnv, { ...work, reader: verifier ?? null });
}
