/** The parts of a script: simple commands with their words, and what is around each of them. */

export interface Word {
  text: string;
  /** Holds something that only running the command would tell. */
  dynamic: boolean;
  /** An unquoted glob character: it may stand for other names. */
  glob: boolean;
  /** A variable or a substitution took part in it, known or not. */
  expanded: boolean;
  /** It is made of a loop's name that has several values, of which the text shows the first. */
  several: boolean;
}

export type Operator = "" | "&&" | "||" | "|&" | ";;" | ";" | "&" | "|" | "(" | ")" | "\n";

export interface CommandPart {
  words: Word[];
  /** Files that it reads from or writes to by redirection. */
  redirects: { write: boolean; target: Word }[];
  /** The text that a here-document or here-string feeds it. */
  fed: string | null;
  /** What it prints is another program's input. */
  piped: boolean;
  /** What it reads is another program's output. */
  reads_pipe: boolean;
  /** The operators around it; "" at the beginning and the end. */
  before: Operator;
  after: Operator;
  /** How many loops, conditions and blocks are around it. */
  nested: number;
  /** The subshells around it, from the outside. */
  shells: readonly number[];
}
