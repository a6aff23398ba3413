/**
 * Carrying out one undo that was begun: the compensation with its attempts, the further check, the
 * read-back. Only what happened is told; nothing is written here.
 */
import { isClosed } from "../engine/closing.ts";
import type { Env } from "../kernel/env.ts";
import { messageOf } from "../kernel/errors.ts";
import { closedText } from "./classify.ts";
import type { UndoEnd } from "./complete.ts";
import { notCheckedText } from "./conflict.ts";
import type { Again, UndoTask } from "./desk.ts";
import type { Compensator, Reader, ReadRequest, UndoCheck, UndoObjection } from "./ports.ts";
import { readEach } from "./read-each.ts";
import { readBack } from "./readback.ts";

export interface UndoTools {
  compensator: Compensator;
  /** Null where there is no reader: a declared read-back then ends `unverified`. */
  reader: Reader | null;
  verify: UndoCheck | null;
  objection: UndoObjection | null;
  /** Attempts in all. */
  retries: number;
  /** The first wait between attempts, before jitter; it doubles each time. */
  backoff_ms: number;
}

interface Attempted {
  attempt: number;
  error: string;
  /** How long until the next attempt, or null after the last. */
  retry_in_ms: number | null;
}

const LONGEST_BACKOFF_MS = 30_000;

interface UndoWork {
  env: Env;
  task: UndoTask;
  tools: UndoTools;
  /** From then on the undo is not tried any more. */
  closes_ms: number | undefined;
  /** Ends what is running. */
  signal: AbortSignal;
  /** Ends the wait for a further attempt. */
  waiting: AbortSignal;
  /** What was said of a failure, as it may be told. */
  clean(text: string): string;
  /** Asked before each further attempt; throws when there shall be none. */
  mayRetry(): void;
  /** What a further attempt meets; `unread` where that could not be looked at, and then it is none. */
  again(failed: {
    attempts: number;
    error: string;
  }): Promise<Again | { state: "unread"; why?: string | undefined }>;
  told(attempt: Attempted): void;
}

/**
 * Throws only when interrupted: then it is not known how the undo ended, and it has to be done again with
 * the same key.
 */
export async function undoStep(work: UndoWork): Promise<UndoEnd | Settled> {
  const { env, task, tools, signal } = work;
  const { call } = task;
  const { verify, reader } = tools;
  const done = await compensate(work);
  if ("outcome" in done || !done.ok) return done;
  const problem = verify === null ? null : await failure(() => verify(call, signal), signal);
  if (problem !== null) {
    const error = work.clean(`the verify check did not confirm the undo: ${problem}`);
    return { ok: false, attempts: done.attempts, error };
  }
  if (task.read_back === null) return done;
  if (reader === null) return { ...done, read_back: { as: "unverified" } };
  const bounded: Reader = async (request) => {
    const objection = await tools.objection?.([request.tool]);
    if (objection) throw new Error(objection);
    const read = (one: ReadRequest) => reader(one, signal, call.run_id);
    return untilAborted(() => readEach(read, request, signal), signal);
  };
  return { ...done, read_back: await readBack(env, bounded, task.read_back, signal) };
}

type Settled = Extract<Again, { state: "settled" }>;

async function compensate(work: UndoWork): Promise<UndoEnd | Settled> {
  const { env, task, tools, waiting, mayRetry, told } = work;
  const { call } = task;
  // The read-back's tool too: an undo that cannot be confirmed afterwards had better not be begun.
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
    last_error = end.error;
    const retry_in_ms = attempt < tools.retries ? jittered(env, tools.backoff_ms, attempt) : null;
    told({ attempt, error: end.error, retry_in_ms });
    if (retry_in_ms === null) return end;
    mayRetry();
    await env.sleep(retry_in_ms, waiting);
    mayRetry();
  }
}

/** One attempt, behind a look where it is not the first: the first was looked at when the undo was begun. */
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
  if (isClosed(work, work.env.now())) return "closed";
  const problem = await failure(() => tools.compensator(task.call, signal), signal);
  if (problem === null) return { ok: true, attempts: attempt, read_back: null };
  return { ok: false, attempts: attempt, error: work.clean(problem) };
}

/** Between half and all of the doubled wait, so that workers that failed together do not retry together. */
function jittered(env: Env, base_ms: number, attempt: number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, base_ms * 2 ** (attempt - 1));
  return Math.round(full / 2 + (env.random() * full) / 2);
}

/** The message of a failure, or null for a success; throws when the work was interrupted. */
async function failure(work: () => Promise<unknown>, signal: AbortSignal): Promise<string | null> {
  try {
    await untilAborted(work, signal);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** Does not wait for work that ignores its signal. */
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
