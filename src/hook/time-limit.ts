/**
 * Limits the time for classifying a call. The work is synchronous, and a crafted call with very many words, directories
 * or braces could take minutes. Clients stop waiting and make the call, so the refusal must come earlier.
 */
import type { Context, Script } from "node:vm";

const JUDGING_MS = 4_000;

/** Made once, because a new context takes longer than most classifications. */
let made: { judge: { work?: (() => unknown) | undefined }; script: Script; context: Context } | undefined;

function prepared(): NonNullable<typeof made> {
  if (made !== undefined) return made;
  const vm = process.getBuiltinModule("node:vm");
  const judge = {};
  made = { judge, script: new vm.Script("judge.work()"), context: vm.createContext({ judge }) };
  return made;
}

export function classifyWithTimeout<T>(work: () => T): T {
  const { judge, script, context } = prepared();
  judge.work = work;
  try {
    // Timers do not fire during synchronous work. This timeout interrupts it from outside.
    return script.runInContext(context, { timeout: JUDGING_MS }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new Error(`the call could not be classified within ${JUDGING_MS / 1_000} s, so it is refused`);
  } finally {
    judge.work = undefined;
  }
}
