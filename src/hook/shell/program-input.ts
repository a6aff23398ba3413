/** Standard input of a program in a pipeline, and words without expansions. */
import type { ShellWord } from "./command-parts.ts";

/** Input of a program, and whether its output goes to another program. */
export interface ProgramInput {
  text: string | null;
  piped: boolean;
}
export const NO_INPUT: ProgramInput = { text: null, piped: false };

export const plainWord = (text: string): ShellWord => ({
  text,
  dynamic: false,
  glob: false,
  expanded: false,
  several: false,
  loose: false,
  inherited: false,
});
