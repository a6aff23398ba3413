/**
 * Which variables of a script have a known text. One has it where it is assigned once, unconditionally and before it is
 * used, or is the name of a loop over fixed words. Any other assignment makes its text known at run time alone.
 */
import type { CommandPart, Word } from "./parts.ts";

interface KnownText {
  text: string;
  /** A loop's name with several values: each of them was looked at, so it is known only as a whole word. */
  several: boolean;
}

/** Null: assigned, but to what cannot be told. */
export type Known = Map<string, KnownText | null>;

export const ASSIGNMENT = /^[A-Za-z_]\w*=/;
const DECLARES = /^(?:export|local|readonly|declare|typeset)$/;
/** Each of their words may be the name of a variable that they change. */
const CHANGES = /^(?:read|unset|printf|getopts|mapfile|readarray|let|select|coproc)$/;
const MOVES = /^(?:cd|pushd|popd)$/;
const NAME = /^[A-Za-z_]\w*$/;

/** `sure`: the part runs, once, and in the shell of the script itself. */
export function learnVariables(known: Known, { words }: CommandPart, sure: boolean): void {
  const [first, ...rest] = words;
  if (first === undefined) return;
  if (first.text === "for") learnLoop(known, rest);
  if (words.every(({ text }) => ASSIGNMENT.test(text))) assign(known, words, sure);
  if (DECLARES.test(first.text)) {
    assign(
      known,
      rest.filter(({ text }) => ASSIGNMENT.test(text)),
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

function assign(known: Known, words: readonly Word[], sure: boolean): void {
  for (const { text, dynamic } of words) {
    const end = text.indexOf("=");
    const name = text.slice(0, end);
    const certain = sure && !dynamic && !known.has(name);
    known.set(name, certain ? { text: text.slice(end + 1), several: false } : null);
  }
}

function forget(known: Known, words: readonly Word[]): void {
  for (const { text } of words) if (NAME.test(text)) known.set(text, null);
}

function learnLoop(known: Known, [name, , ...values]: readonly Word[]): void {
  if (name === undefined) return;
  const fixed =
    values.length > 0 &&
    values.every(({ text, dynamic, glob }) => !dynamic && !glob && !text.startsWith("-"));
  const [value] = values;
  known.set(
    name.text,
    fixed && !known.has(name.text) ? { text: value!.text, several: values.length > 1 } : null,
  );
}
