/**
 * Limits the time for classifying a call. The work is synchronous, and a crafted call with very many words, directories
 * or braces could take minutes. Clients stop waiting and make the call, so the refusal must come earlier.
 */
const JUDGING_MS = 4_000;

export function classifyWithTimeout<T>(judge: () => T): T {
  try {
    // Timers do not fire during synchronous work. This timeout interrupts it from outside.
    return process
      .getBuiltinModule("node:vm")
      .runInNewContext("judge()", { judge }, { timeout: JUDGING_MS }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new Error(`the call could not be classified within ${JUDGING_MS / 1_000} s, so it is refused`);
  }
}
