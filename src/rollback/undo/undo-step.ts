/**
 * Carries out one undo that has begun: the compensation with its retries, the extra check and the verification. It
 * returns the result and writes nothing.
 */
import { isUndoExpired } from "../../govern/runs/undo-deadlines.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { BeginRetryResult, UndoTask } from "../backend/backend.ts";
import { closedText } from "../plan/classify.ts";
import { notCheckedText } from "../plan/conflict.ts";
import type { LeftPart } from "../plan/report.ts";
import {
  type CompensatorFn,
  PartialUndoError,
  type ReaderFn,
  type ReadRequest,
  type UndoCheck,
  type UndoObjection,
} from "../ports.ts";
import type { UndoEnd } from "./complete-undo.ts";
import { readEach } from "./read-each.ts";
import { readBack } from "./readback.ts";

export interface UndoTools {
  compensator: CompensatorFn;
  /** Reader for this tool. If null, a declared verification ends as `unverified`. */
  readerOf(tool: string): ReaderFn | null;
  verify: UndoCheck | null;
  objection: UndoObjection | null;
  /** Total attempts. */
  retries: number;
  /** First wait between attempts, before jitter. It doubles each time. */
  backoff_ms: number;
}

interface Attempted {
  attempt: number;
  error: string;
  /** Wait until the next attempt; null after the last. */
  retry_in_ms: number | null;
}

const LONGEST_BACKOFF_MS = 30_000;

interface UndoWork {
  env: RuntimeEnv;
  task: UndoTask;
  tools: UndoTools;
  /** No attempt starts after this time. */
  closes_ms: number | undefined;
  /** Aborts the work in progress. */
  signal: AbortSignal;
  /** Aborts the wait for the next attempt. */
  waiting: AbortSignal;
  /** Removes values and credentials from an error message. */
  clean(text: string): string;
  /** Called before each retry; throws to prevent it. */
  mayRetry(): void;
  /** Reads the state before a retry. `unread`: the state could not be read, so the retry does not run. */
  again(failed: {
    attempts: number;
    error: string;
  }): Promise<BeginRetryResult | { state: "unread"; why?: string | undefined }>;
  told(attempt: Attempted): void;
}

/** Throws only if interrupted. The result is then unknown, and the undo has to run again with the same key. */
export async function undoStep(work: UndoWork): Promise<UndoEnd | Settled> {
  const { env, task, tools, signal } = work;
  const { call } = task;
  const { verify } = tools;
  const done = await compensate(work);
  if ("outcome" in done || !done.ok) return done;
  const problem = verify === null ? null : await failure(() => verify(call, signal), signal);
  if (problem !== null) {
    const error = work.clean(`the verify check did not confirm the undo: ${problem}`);
    return { ok: false, attempts: done.attempts, error };
  }
  if (task.read_back === null) return done;
  const reader = tools.readerOf(task.read_back.tool);
  if (reader === null) return { ...done, read_back: { as: "unverified" } };
  const bounded: ReaderFn = async (request) => {
    const objection = await tools.objection?.([request.tool]);
    if (objection) throw new Error(objection);
    const read = (one: ReadRequest) => reader(one, signal, call.run_id);
    return untilAborted(() => readEach(read, request, signal), signal);
  };
  return { ...done, read_back: await readBack(env, bounded, task.read_back, signal) };
}

type Settled = Extract<BeginRetryResult, { state: "settled" }>;

async function compensate(work: UndoWork): Promise<UndoEnd | Settled> {
  const { env, task, tools, waiting, mayRetry, told } = work;
  const { call } = task;
  // Include the verification's tool: an undo that cannot be verified afterwards should not begin.
  const called = [call.tool, ...(task.read_back === null ? [] : [task.read_back.tool])];
  for (let attempt = 1, last_error = ""; ; attempt++) {
    const objection = await tools.objection?.(called);
    if (objection) return { ok: false, attempts: attempt - 1, error: objection };
    const end = await tryOnce(work, attempt, last_error);
    if (end === "closed") {
      const closed = closedText(work.closes_ms!);
      const error = last_error === "" ? closed : `${last_error}; ${closed}`;
      return { ok: false, attempts: attempt - 1, error };
    }
    if ("outcome" in end || end.ok || end.conflict?.current_hash !== undefined) return end;
    if (end.left !== undefined) return end;
    last_error = end.error;
    const retry_in_ms = attempt < tools.retries ? jittered(env, tools.backoff_ms, attempt) : null;
    told({ attempt, error: end.error, retry_in_ms });
    if (retry_in_ms === null) return end;
    mayRetry();
    await env.sleep(retry_in_ms, waiting);
    mayRetry();
  }
}

/** Makes one attempt. A retry reads the state first; for the first attempt that happened when the undo began. */
async function tryOnce(
  work: UndoWork,
  attempt: number,
  error: string,
): Promise<UndoEnd | Settled | "closed"> {
  const { task, tools, signal } = work;
  const attempts = attempt - 1;
  const met = attempts === 0 ? ({ state: "go" } as const) : await work.again({ attempts, error });
  if (met.state === "settled") return met;
  if (met.state === "undone") return { ok: true, attempts, read_back: null };
  if (met.state === "conflict") {
    const { error: conflict, current_hash } = met.conflict;
    return {
      ok: false,
      attempts,
      error: `${conflict}; the last attempt: ${error}`,
      conflict: { current_hash },
    };
  }
  if (met.state === "unread")
    return { ok: false, attempts: attempt, error: notCheckedText(met.why), conflict: {} };
  if (isUndoExpired(work, work.env.now())) return "closed";
  let left: readonly LeftPart[] | undefined;
  const undo = () =>
    tools.compensator(task.call, signal).catch((error: unknown) => {
      if (error instanceof PartialUndoError) left = error.left;
      throw error;
    });
  const problem = await failure(undo, signal);
  if (problem === null) return { ok: true, attempts: attempt, read_back: null };
  const error_text = work.clean(problem);
  return { ok: false, attempts: attempt, error: error_text, ...(left === undefined ? {} : { left }) };
}

/** Between half and all of the doubled wait, so that workers that failed together do not retry together. */
function jittered(env: RuntimeEnv, base_ms: number, attempt: number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, base_ms * 2 ** (attempt - 1));
  return Math.round(full / 2 + (env.random() * full) / 2);
}

/** Returns the error message, or null on success. Throws if the work was interrupted. */
async function failure(work: () => Promise<unknown>, signal: AbortSignal): Promise<string | null> {
  try {
    await untilAborted(work, signal);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** Rejects on abort even if the work ignores its signal. */
export async function untilAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return await new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    Promise.resolve()
      .then(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}
