/**
 * Rolling back a run of a remote server with the caller's own compensator, through the routes of a remote
 * worker. The server keeps order, leases and records; this only does the undoing and tells how it went.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { RollbackInterrupted } from "../rollback/execute.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import { firstMismatch } from "../rollback/readback.ts";
import type { CompensationTask } from "../rollback/remote.ts";
import { assembleReport, type RollbackReport, type StepOutcome } from "../rollback/report.ts";
import { untilAborted } from "../rollback/undo-step.ts";
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
  const { signal = NEVER } = options;
  const outcomes = new Map<number, StepOutcome>();
  try {
    for (const action of (await plan()).actions) {
      signal.throwIfAborted();
      outcomes.set(action.step, await settle(request, run_id, action, { ...options, signal }));
    }
  } catch (error) {
    // Nothing is told of the undo under way, because nobody knows how it ended: the server keeps it open.
    throw signal.aborted ? new RollbackInterrupted(assembleReport(outcomes)) : error;
  }
  return assembleReport(outcomes);
}

type Settling = RollbackRequest & { signal: AbortSignal };

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
  options: Settling,
): Promise<StepOutcome> {
  if (action.kind === "defer") return { as: "deferred", blocked_by: action.blocked_by };
  if (action.kind !== "compensate") return { as: PLAIN[action.kind] };
  const at = `/v1/runs/${encodeURIComponent(run_id)}/steps/${action.step}/compensation`;
  let task: CompensationTask;
  try {
    task = (await request("POST", at, {})) as unknown as CompensationTask;
  } catch (error) {
    return refused(action.step, error);
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

/** What the server's refusal says of the step; one that is not about the step ends the rollback. */
function refused(step: number, error: unknown): StepOutcome {
  const message = messageOf(error);
  if (!(error instanceof SvcError) || error.code !== "conflict") throw error;
  if (message.startsWith("approval required")) return { as: "awaiting_approval" };
  const blockers = /^it is not the turn of step \d+: step ([\d, ]+)/.exec(message);
  if (blockers !== null) return { as: "deferred", blocked_by: blockers[1]!.split(",").map(Number) };
  if (message === `step ${step} is already compensated`) return { as: "skipped" };
  throw error;
}

async function compensate(
  task: CompensationTask,
  { compensator, retries, signal }: Settling,
): Promise<{ attempts: number; error: string | null }> {
  const { verification: _, ...call } = task;
  const most = retries ?? LIMITS.rollback_retries.default;
  for (let attempts = 1; ; attempts++) {
    try {
      await untilAborted(() => compensator(call, signal), signal);
      return { attempts, error: null };
    } catch (error) {
      signal.throwIfAborted();
      if (attempts >= most) return { attempts, error: messageOf(error) };
      await sleep(BACKOFF_MS * 2 ** (attempts - 1) * (0.5 + Math.random() / 2), undefined, { signal });
    }
  }
}

/** What the read-back showed last; undefined where none is declared, no verifier was given, or no read worked. */
async function observe(
  { verification }: CompensationTask,
  { verifier, signal }: Settling,
): Promise<Json | undefined> {
  if (verification === null || verifier === undefined) return undefined;
  let seen: Json | undefined;
  for (let read = 0; read < READS; read++) {
    if (read > 0) await sleep(BACKOFF_MS * 2 ** (read - 1), undefined, { signal });
    try {
      const asked = { tool: verification.tool, arguments: verification.arguments };
      seen = await untilAborted(() => verifier(asked, signal), signal);
      if (firstMismatch(verification.expect, seen) === null) return seen;
    } catch {
      // A failed read counts as a mismatch: read again.
      signal.throwIfAborted();
    }
  }
  return seen ?? null;
}
