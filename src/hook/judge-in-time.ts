/**
 * Judging is one stretch of work, and a call can be made up so that it takes minutes: very many words, folders or
 * braces. Clients stop waiting for a hook and go on without it, so it has to come to a refusal before they do.
 */
const JUDGING_MS = 4_000;

export function judgeInTime<T>(judge: () => T): T {
  try {
    // No timer fires during one stretch of work; this ends it from outside.
    return process
      .getBuiltinModule("node:vm")
      .runInNewContext("judge()", { judge }, { timeout: JUDGING_MS }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new Error(`the call could not be judged within ${JUDGING_MS / 1_000} s, so it is refused`);
  }
}
