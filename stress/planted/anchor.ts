/**
 * Finds the place that a planted bug names. The text is looked for as it is; if it is not there, by its tokens, with
 * every identifier free to have another name. Formatting and renames in the sources therefore cost no edit of the list.
 */

interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** One place in a source, and the names that the sources use there for the identifiers of the bug's text. */
export interface Anchor {
  readonly start: number;
  readonly end: number;
  readonly names: ReadonlyMap<string, string>;
}

const TOKENS = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_$][\w$]*|\d[\w.]*|\S/g;
const IDENTIFIER = /^[A-Za-z_$]/;
const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "as async await break case catch class const continue default delete do else export extends false finally for " +
    "from function if implements import in instanceof interface let new null of private readonly return satisfies " +
    "static super switch this throw true try type typeof undefined void while yield"
  ).split(" "),
);

/** Every place that the text fits: exact ones if there are any, else those that differ by names and spaces alone. */
export function findAnchors(text: string, source: string): Anchor[] {
  const exact = exactAnchors(text, source);
  return exact.length > 0 ? exact : renamedAnchors(text, source);
}

/** The bug's replacement in the names of the sources. */
export function inNamesOf({ names }: Anchor, replacement: string): string {
  return replacement.replace(TOKENS, (token) => names.get(token) ?? token);
}

function exactAnchors(text: string, source: string): Anchor[] {
  const anchors: Anchor[] = [];
  if (text === "") return anchors;
  for (let at = source.indexOf(text); at >= 0; at = source.indexOf(text, at + text.length))
    anchors.push({ start: at, end: at + text.length, names: new Map() });
  return anchors;
}

function renamedAnchors(text: string, source: string): Anchor[] {
  const expected = tokensOf(text);
  const present = tokensOf(source);
  if (expected.length === 0) return [];
  const anchors: Anchor[] = [];
  for (let at = 0; at + expected.length <= present.length; at++) {
    const names = namesAt(expected, present, at);
    if (names === null) continue;
    anchors.push({ start: present[at]!.start, end: present[at + expected.length - 1]!.end, names });
  }
  return anchors;
}

/** How the sources call the identifiers from a position on; null if the tokens there are others. */
function namesAt(
  expected: readonly Token[],
  present: readonly Token[],
  at: number,
): ReadonlyMap<string, string> | null {
  const names = new Map<string, string>();
  for (const [i, { text }] of expected.entries()) {
    const there = present[at + i]!.text;
    if (!isRenamable(text) || !isRenamable(there)) {
      if (text !== there) return null;
    } else if ((names.get(text) ?? there) !== there) return null;
    else names.set(text, there);
  }
  return names;
}

const isRenamable = (token: string): boolean => IDENTIFIER.test(token) && !KEYWORDS.has(token);

function tokensOf(text: string): Token[] {
  return [...text.matchAll(TOKENS)].map((match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
  }));
}
