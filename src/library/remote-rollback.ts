/**
 * Rolling back a run of a remote server with the caller's own compensator, through the routes of a remote
 * worker. The server keeps order, leases and records; this only does the undoing and tells how it went.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import { firstMismatch } from "../rollback/readback.ts";
import type { CompensationTask } from "../rollback/remote.ts";
import { assembleReport, type RollbackReport, type StepOutcome } from "../rollback/report.ts";
import type { Request } from "./request.ts";
import type { RollbackRequest } from "./run.ts";

const BACKOFF_MS = 250;
const READS = 4;
const NEVER = new AbortController().signal;

export async function remoteRollback(
  request: Request,
  run_id: string,
  plan: () => Promise<RollbackPlan>,
  options: RollbackRequest,
): Promise<RollbackReport> {
  if (options.approve_compensations) {
    throw new SvcError(
      "invalid",
      "approve_compensations: a remote worker cannot approve; use POST /v1/runs/{id}/rollback or svc rollback",
    );
  }
  const outcomes = new Map<number, StepOutcome>();
  for (const action of (await plan()).actions) {
    options.signal?.throwIfAborted();
    outcomes.set(action.step, await settle(request, run_id, action, options));
  }
  return assembleReport(outcomes);
}

const PLAIN = {
  skip: "skipped",
  unrecoverable: "unrecoverable",
  unresolved: "unresolved",
  unmanifested: "unmanifested",
} as const;

async function settle(
  request: Request,
  run_id: string,
  action: RollbackPlan["actions"][number],
  options: RollbackRequest,
): Promise<StepOutcome> {
  if (action.kind === "defer") return { as: "deferred", blocked_by: action.blocked_by };
  if (action.kind !== "compensate") return { as: PLAIN[action.kind] };
  const at = `/v1/runs/${encodeURIComponent(run_id)}/steps/${action.step}/compensation`;
  let task: CompensationTask;
  try {
    task = (await request("POST", at, {})) as unknown as CompensationTask;
  } catch (error) {
    return refused(error);
  }
  const { attempts, error } = await compensate(task, options);
  const observed = error === null ? await observe(task, options) : undefined;
  const told = {
    status: error === null ? "succeeded" : "failed",
    attempts,
    ...(error === null ? {} : { error }),
    ...(observed === undefined ? {} : { observed }),
  };
  const done = (await request("POST", `${at}/outcome`, told)) as { status: string };
  if (done.status === "compensated")
    return { as: action.verified && observed === undefined ? "unverified" : "compensated" };
  return {
    as: "failed",
    error:
      error ??
      `verification failed: ${task.verification?.tool} did not show the expected state after the undo`,
  };
}

function refused(error: unknown): StepOutcome {
  const message = messageOf(error);
  if (!(error instanceof SvcError) || error.code !== "conflict") throw error;
  if (message.startsWith("approval required")) return { as: "awaiting_approval" };
  const blockers = /^it is not the turn of step \d+: step ([\d, ]+)/.exec(message);
  if (blockers !== null) return { as: "deferred", blocked_by: blockers[1]!.split(",").map(Number) };
  return { as: "failed", error: message };
}

async function compensate(
  task: CompensationTask,
  options: RollbackRequest,
): Promise<{ attempts: number; error: string | null }> {
  const { verification: _, ...call } = task;
  const most = options.retries ?? LIMITS.rollback_retries.default;
  for (let attempts = 1; ; attempts++) {
    try {
      await options.compensator(call, options.signal ?? NEVER);
      return { attempts, error: null };
    } catch (error) {
      if (attempts >= most) return { attempts, error: messageOf(error) };
      await sleep(BACKOFF_MS * 2 ** (attempts - 1) * (0.5 + Math.random() / 2));
    }
  }
}

/** What the read-back showed last; undefined where none is declared, no verifier was given, or no read worked. */
async function observe(
  { verification }: CompensationTask,
  { verifier, signal }: RollbackRequest,
): Promise<Json | undefined> {
  if (verification === null || verifier === undefined) return undefined;
  let seen: Json | undefined;
  for (let read = 0; read < READS; read++) {
    if (read > 0) await sleep(BACKOFF_MS * 2 ** (read - 1));
    try {
      seen = await verifier({ tool: verification.tool, arguments: verification.arguments }, signal ?? NEVER);
      if (firstMismatch(verification.expect, seen) === null) return seen;
    } catch {
      // A failed read counts as a mismatch: read again.
    }
  }
  return seen ?? null;
}
