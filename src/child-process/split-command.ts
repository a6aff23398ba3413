/**
 * Splits a command line into words like a POSIX shell: blanks, both kinds of quotes, backslashes. Expands nothing and
 * starts no shell; users who want one write `sh -c '...'`.
 */
import { invalidError } from "../kernel/errors.ts";

const BLANK = /[ \t\r\n]/;
/** The characters that a backslash escapes inside double quotes. Before any other character it is literal. */
const ESCAPED_IN_QUOTES = '"\\$`';

export function splitCommand(command: string, what = "command"): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  const until = (end: string): string => {
    const close = command.indexOf(end, at);
    if (close < 0) throw invalidError(`${what}: a quote is not closed`);
    const text = command.slice(at, close);
    at = close + 1;
    return text;
  };
  while (at < command.length) {
    const c = command[at++]!;
    if (BLANK.test(c)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (c === "'") {
      word = (word ?? "") + until("'");
    } else if (c === '"') {
      const quoted = doubleQuoted(command, at, what);
      word = (word ?? "") + quoted.text;
      at = quoted.end;
    } else if (c === "\\") {
      if (at >= command.length) throw invalidError(`${what}: ends in a backslash`);
      const next = command[at++]!;
      if (next !== "\n") word = (word ?? "") + next;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (word !== undefined) words.push(word);
  if (words.length === 0 || words[0] === "")
    throw invalidError(`${what}: is empty; write the program and its arguments`);
  if (words.some((one) => one.includes("\0"))) throw invalidError(`${what}: holds a NUL character`);
  return words;
}

function doubleQuoted(command: string, start: number, what: string): { text: string; end: number } {
  let text = "";
  for (let at = start; at < command.length; at++) {
    const c = command[at]!;
    if (c === '"') return { text, end: at + 1 };
    const next = command[at + 1];
    if (c === "\\" && next !== undefined && ESCAPED_IN_QUOTES.includes(next)) {
      text += next;
      at++;
    } else if (c === "\\" && next === "\n") {
      at++;
    } else {
      text += c;
    }
  }
  throw invalidError(`${what}: a quote is not closed`);
}
