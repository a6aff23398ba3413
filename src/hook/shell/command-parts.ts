/** Parts of a script: simple commands with their words and their context. */

export interface ShellWord {
  text: string;
  /** The text depends on the execution. */
  dynamic: boolean;
  /** Contains an unquoted glob character, so it may match other names. */
  glob: boolean;
  /** Contains the result of a variable or a substitution, known or unknown. */
  expanded: boolean;
  /** Contains a loop variable with several values. The text contains the first value. */
  several: boolean;
  /** Contains an expansion outside quotes, which the shell splits into words. */
  loose: boolean;
  /** Contains a variable that the script did not set, so its value may be a secret. */
  inherited: boolean;
  /** Names the output of another command, `<(..)`. */
  of_command?: boolean;
}

export type ShellOperator = "" | "&&" | "||" | "|&" | ";;" | ";" | "&" | "|" | "(" | ")" | "\n";

export interface CommandPart {
  words: ShellWord[];
  /** Files that redirections read or write. */
  redirects: { write: boolean; target: ShellWord }[];
  /** Input from a here-document or here-string. */
  fed: string | null;
  /** The output goes to another program. */
  piped: boolean;
  /** The input is another program's output. */
  reads_pipe: boolean;
  /** Operators before and after the part, or "" at the start and end. */
  before: ShellOperator;
  after: ShellOperator;
  /** Number of enclosing loops, conditions and blocks. */
  nested: number;
  /** Enclosing subshells, outermost first. */
  shells: readonly number[];
}
