/**
 * Reads TypeScript just well enough for rules about source text: it tells code from comments, strings
 * and regular expressions, keeping every line and column where it was. (TypeScript 7 has no API to ask.)
 */

export interface SourceText {
  /** Replaces comments and the content of strings, templates and regular expressions by spaces. */
  readonly code: string;
  /** Only comments replaced by spaces. */
  readonly withStrings: string;
  /** Regular expressions as they are written, with their flags. */
  readonly patterns: readonly string[];
}

/** After one of these a slash begins a regular expression; after anything else it divides. */
const BEFORE_REGEX_CHAR = /[(,=:[!&|?{};+\-*%<>~^]/;
const BEFORE_REGEX_WORD =
  /(?:^|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/;

export function readSource(text: string): SourceText {
  const code = text.split("");
  const withStrings = text.split("");
  const patterns: string[] = [];
  /** For each template we are inside of: how many braces are open in its present `${...}`. */
  const templates: number[] = [];
  let at = 0;

  const blank = (target: string[], from: number, to: number): void => {
    for (let i = from; i < to; i++) if (target[i] !== "\n") target[i] = " ";
  };
  const comment = (end: number): void => {
    blank(code, at, end);
    blank(withStrings, at, end);
    at = end;
  };
  const literal = (end: number): void => {
    blank(code, at + 1, end - 1);
    at = end;
  };

  while (at < text.length) {
    const two = text.slice(at, at + 2);
    const c = two[0];
    if (two === "//") comment(endOr(text.indexOf("\n", at), text.length));
    else if (two === "/*") comment(endOr(text.indexOf("*/", at + 2) + 2, text.length, 1));
    else if (c === '"' || c === "'") literal(endOfQuoted(text, at));
    else if (c === "`") {
      at = openTemplate(text, at, code, templates);
    } else if (c === "}" && templates.at(-1) === 0) {
      templates.pop();
      at = openTemplate(text, at, code, templates);
    } else if (c === "/" && startsRegex(code, at)) {
      const end = endOfRegex(text, at);
      patterns.push(text.slice(at, end) + /^[a-z]*/.exec(text.slice(end, end + 8))![0]);
      literal(end);
    } else {
      const depth = templates.length - 1;
      if (depth >= 0 && c === "{") templates[depth]! += 1;
      if (depth >= 0 && c === "}") templates[depth]! -= 1;
      at++;
    }
  }
  return { code: code.join(""), withStrings: withStrings.join(""), patterns };
}

/** The line, from 1, on which a position lies. */
export function lineAt(text: string, position: number): number {
  let line = 1;
  for (let i = text.indexOf("\n"); i >= 0 && i < position; i = text.indexOf("\n", i + 1)) line++;
  return line;
}

function endOr(found: number, otherwise: number, least = 0): number {
  return found > least ? found : otherwise;
}

function endOfQuoted(text: string, start: number): number {
  const quote = text[start];
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === quote || text[i] === "\n") return i + 1;
  }
  return text.length;
}

function endOfRegex(text: string, start: number): number {
  let inClass = false;
  for (let i = start + 1; i < text.length; i++) {
    const c = text[i];
    if (c === "\\") i++;
    else if (c === "[") inClass = true;
    else if (c === "]") inClass = false;
    else if (c === "\n" || (c === "/" && !inClass)) return i + 1;
  }
  return text.length;
}

/** Walks the literal part of a template, up to its end or to the next `${`, whose code is then read on. */
function openTemplate(text: string, start: number, code: string[], templates: number[]): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === "`") return i + 1;
    if (text[i] === "$" && text[i + 1] === "{") {
      templates.push(0);
      return i + 2;
    }
    if (text[i] !== "\n") code[i] = " ";
    if (text[i] === "\\") {
      i++;
      if (text[i] !== "\n") code[i] = " ";
    }
  }
  return text.length;
}

function startsRegex(code: readonly string[], at: number): boolean {
  let i = at - 1;
  while (i >= 0 && /\s/.test(code[i]!)) i--;
  if (i < 0 || BEFORE_REGEX_CHAR.test(code[i]!)) return true;
  return BEFORE_REGEX_WORD.test(code.slice(Math.max(0, i - 12), i + 1).join(""));
}
