/**
 * Tracks variables of a script with a known text: those assigned once, unconditionally and before their use, and loop
 * variables over fixed words. The text of any other variable is known only at run time.
 */
import type { CommandPart, ShellWord } from "./command-parts.ts";

interface KnownText {
  text: string;
  /** A loop variable with several values. Each value was checked, so the variable is known only as a complete word. */
  several: boolean;
  /** A loop variable over the files that a pattern matches. The text is the pattern. */
  glob?: boolean;
}

/** Null for a variable with an unknown value. */
export type KnownVariables = Map<string, KnownText | null>;

export const VARIABLE_ASSIGNMENT = /^[A-Za-z_]\w*=/;
const DECLARES = /^(?:export|local|readonly|declare|typeset)$/;
/** Builtins that change the variables in their arguments. */
const CHANGES = /^(?:read|unset|printf|getopts|mapfile|readarray|let|select|coproc)$/;
/** Variables of the shell without secrets. */
export const HARMLESS_VARIABLES =
  /^(?:PWD|OLDPWD|HOME|USER|LOGNAME|HOSTNAME|SHELL|LANG|TERM|UID|EUID|RANDOM|SECONDS|LINENO|COLUMNS|LINES|OSTYPE|HOSTTYPE|BASH_VERSION)$/;
const MOVES = /^(?:cd|pushd|popd)$/;
const NAME = /^[A-Za-z_]\w*$/;

/** `sure`: the part runs exactly once, in the script's own shell. */
export function learnVariables(known: KnownVariables, { words }: CommandPart, sure: boolean): void {
  const [first, ...rest] = words;
  if (first === undefined) return;
  if (first.text === "for") learnLoop(known, rest);
  if (words.every(({ text }) => VARIABLE_ASSIGNMENT.test(text))) assign(known, words, sure);
  if (DECLARES.test(first.text)) {
    assign(
      known,
      rest.filter(({ text }) => VARIABLE_ASSIGNMENT.test(text)),
      sure,
    );
    forget(
      known,
      rest.filter(({ text }) => NAME.test(text)),
    );
  }
  if (words.some(({ text }) => CHANGES.test(text))) forget(known, words);
  if (words.some(({ text }) => MOVES.test(text))) known.set("PWD", null);
}

function assign(known: KnownVariables, words: readonly ShellWord[], sure: boolean): void {
  for (const { text, dynamic, several } of words) {
    const end = text.indexOf("=");
    const name = text.slice(0, end);
    const certain = sure && !dynamic && !several && !known.has(name);
    known.set(name, certain ? { text: text.slice(end + 1), several: false } : null);
  }
}

function forget(known: KnownVariables, words: readonly ShellWord[]): void {
  for (const { text } of words) if (NAME.test(text)) known.set(text, null);
}

function learnLoop(known: KnownVariables, [name, , ...values]: readonly ShellWord[]): void {
  if (name === undefined) return;
  const fixed = values.length > 0 && values.every(({ text, dynamic }) => !dynamic && !text.startsWith("-"));
  const globs = values.filter(({ glob }) => glob);
  // A pattern among other values would be checked as one of them, so it must be the only value.
  const clear = fixed && (globs.length === 0 || values.length === 1) && !known.has(name.text);
  const [value] = values;
  known.set(
    name.text,
    clear
      ? { text: value!.text, several: values.length > 1 || globs.length > 0, glob: globs.length > 0 }
      : null,
  );
}
