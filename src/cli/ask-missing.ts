/** Asks the person at the terminal for what an option did not give, so that a short command can be pasted. */
import { invalidError } from "../kernel/errors.ts";
import type { CommandIo } from "./io.ts";

/** Returns the option's text, or the answer. `option` names the option for callers without a terminal. */
export async function textOrAnswer(
  io: CommandIo,
  given: string | undefined,
  { option, question }: { option: string; question: string },
): Promise<string> {
  if (given !== undefined) return given;
  if (io.ask === undefined) throw invalidError(`required option '${option}' not specified`);
  return (await io.ask(`${question}: `)).trim();
}
