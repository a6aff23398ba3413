/**
 * Measures functions by their braces. It need not know the language: a brace opens a function when an
 * arrow, a parameter list or a return type comes before it.
 */

export interface FunctionSpan {
  /** The text before the body, for finding it. */
  readonly header: string;
  readonly line: number;
  readonly lines: number;
  readonly parameters: number;
}

const BLOCK_WORDS = new Set(["if", "for", "while", "switch", "catch", "with"]);
/** Words that begin another statement, so that the text before isn't a return type. */
const NOT_A_TYPE = /\b(?:class|interface|enum|else|try|finally|do|return|export|const|let|static)\b/;
const OPENING: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{", ">": "<" };

/** All functions in code whose comments and strings are blanked (see readSource). */
export function functionsIn(code: string): FunctionSpan[] {
  const spans: FunctionSpan[] = [];
  const open: { at: number; close: number | undefined; line: number }[] = [];
  let line = 1;
  for (let at = 0; at < code.length; at++) {
    const c = code[at];
    if (c === "\n") line++;
    else if (c === "{") open.push({ at, close: parametersEnd(code, at), line });
    else if (c === "}") {
      const start = open.pop();
      if (start?.close === undefined) continue;
      const header = code.slice(code.lastIndexOf("\n", start.at) + 1, start.at).trim();
      const parameters = countParameters(code, start.close);
      spans.push({ header, line: start.line, lines: line - start.line + 1, parameters });
    }
  }
  return spans;
}

/** Where the parameter list of the function ends that the brace opens; -1 where it has none, undefined for no function. */
function parametersEnd(code: string, brace: number): number | undefined {
  const last = skipSpaceBack(code, brace - 1);
  const arrow = code.slice(last - 1, last + 1) === "=>";
  const body = arrow ? last - 1 : brace;
  let at = skipSpaceBack(code, body - 1);
  if (code[at] === ")" && (arrow || isParameterList(code, at))) return at;
  if (code[at] === ")" && !arrow) return undefined;
  const none = arrow ? -1 : undefined;
  // Walk back over what may be a return type, to the colon before it.
  while (at >= 0) {
    const c = code[at]!;
    if (c === ":") {
      const before = skipSpaceBack(code, at - 1);
      const type = code.slice(at + 1, body);
      return code[before] === ")" && !NOT_A_TYPE.test(type) && isParameterList(code, before) ? before : none;
    }
    if (c === ">" && code[at - 1] === "=") at -= 2;
    else if (c in OPENING) at = matchBack(code, at) - 1;
    else if (/[\w$.|&?"'\s]/.test(c)) at--;
    else return none;
  }
  return none;
}

/** The commas between the parameters, not those inside one of them. */
function countParameters(code: string, close: number): number {
  if (close < 0) return 0;
  let count = 0;
  let begun = false;
  for (let at = close - 1; code[at] !== "("; at--) {
    const c = code[at]!;
    if (c === ",") begun = false;
    else if (!/\s/.test(c)) {
      if (!begun) count++;
      begun = true;
      if (c in OPENING && !(c === ">" && code[at - 1] === "=")) at = matchBack(code, at);
    }
  }
  return count;
}

/** Not the condition of an `if` or a loop. */
function isParameterList(code: string, close: number): boolean {
  const end = skipSpaceBack(code, matchBack(code, close) - 1) + 1;
  const word = /[\w$]+$/.exec(code.slice(Math.max(0, end - 80), end))?.[0];
  return word === undefined || !BLOCK_WORDS.has(word);
}

function skipSpaceBack(code: string, from: number): number {
  let at = from;
  while (at >= 0 && /\s/.test(code[at]!)) at--;
  return at;
}

/** The position of the bracket that the one at `close` closes; -1 when there is none. */
function matchBack(code: string, close: number): number {
  const closer = code[close]!;
  const opener = OPENING[closer]!;
  let depth = 0;
  for (let at = close; at >= 0; at--) {
    // The head of an arrow is not a bracket.
    if (code[at] === ">" && code[at - 1] === "=") continue;
    if (code[at] === closer) depth++;
    else if (code[at] === opener && --depth === 0) return at;
  }
  return -1;
}
