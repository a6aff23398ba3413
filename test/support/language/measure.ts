/** Counts the language of a text: banned phrases, how often it speaks to the reader, and how long its parts are. */

interface BannedPhrase {
  readonly name: string;
  readonly pattern: RegExp;
  readonly instead: string;
}

const phrase = (name: string, pattern: string, instead: string): BannedPhrase => ({
  name,
  pattern: new RegExp(`\\b(?:${pattern})\\b`, "gi"),
  instead,
});

/** Phrases that read as stiff or foreign, and the words of the field. Ordinary uses count too: aim low, not at zero. */
export const BANNED_PHRASES: readonly BannedPhrase[] = [
  phrase("told", "told", "report, return, show, notify"),
  phrase("whoever", "whoever", "users with the role, the caller"),
  phrase("whatever", "whatever", "any, regardless of"),
  phrase("in place of", "in place of", "instead of"),
  phrase("beside", "beside", "alongside, next to, concurrently with"),
  phrase("anew", "anew", "again"),
  phrase("meanwhile", "meanwhile", "in the meantime, while"),
  phrase("take back", "(?:take|takes|taken|taking)(?: \\w+){0,2} back", "undo, revoke, withdraw"),
  phrase("stands", "stands|stood", "is active, is recorded, is not undone"),
  phrase("lent", "lent|lends?|lending|lender", "delegated"),
  phrase("goes on", "(?:goes|go|went) on", "continues"),
  phrase("carried on", "carried on", "resumed"),
  phrase("held against", "(?:held|hold|holds)(?: \\w+)? against", "compared with"),
  phrase("look whether", "(?:look|looks|looked) whether", "check"),
  phrase("is no", "(?:is|are) no \\w+", "is not a"),
  phrase("of its own", "of (?:its|their|his|one's) own", "its own, separate"),
  phrase("apart", "apart", "separately"),
  phrase("says so", "says so", "reports it"),
  phrase("likewise", "likewise", "also"),
  phrase("nor", "nor", "or"),
  phrase("mend", "mended?", "fix"),
  phrase("by itself", "by itself", "on its own, automatically"),
  phrase("of which", "(?:of|to|by|with) which", "split the sentence"),
  phrase(
    "what is",
    "what (?:is|was|has|had|were|are|stands|waits|others|another|came|comes)",
    "a noun: pending requests, undone steps",
  ),
];

const PASSIVE =
  /\b(?:is|are|was|were|be|been|being)\s+(?:not |never |only |also |then |again )?(?:\w+ed|given|taken|made|found|kept|held|left|put|read|shown|said|seen|meant|written|sent|let|asked|known|lost|built|brought|undone|cut|set|run|done)\b/gi;
const READER = /\b(?:you|your|yours|you're|you'll)\b/gi;
const CLAUSE = /^\s*(?:What|Whoever|Whatever|Where|Who)\b/;

export interface PhraseMatch {
  readonly name: string;
  readonly instead: string;
  readonly index: number;
}

export interface LanguageFigures {
  readonly words: number;
  readonly marks: number;
  readonly reader: number;
  readonly passives: number;
  /** Sentences that open with a What or Where clause, of all sentences. */
  readonly clauses: number;
  readonly sentences: number;
}

export function bannedPhrases(text: string): PhraseMatch[] {
  return BANNED_PHRASES.flatMap(({ name, pattern, instead }) =>
    [...text.matchAll(pattern)].map(({ index }) => ({ name, instead, index })),
  ).sort((a, b) => a.index - b.index);
}

export function measureText(text: string): LanguageFigures {
  const sentences = text
    .split(/(?<=[.!?])\s+(?=[A-Z"`*(])|\n\s*\n|\n\s*[-*|]\s/)
    .filter((sentence) => sentence.split(/\s+/).length > 3);
  return {
    words: countWords(text),
    marks: bannedPhrases(text).length,
    reader: text.match(READER)?.length ?? 0,
    passives: text.match(PASSIVE)?.length ?? 0,
    clauses: sentences.filter((sentence) => CLAUSE.test(sentence) && !sentence.trim().endsWith("?")).length,
    sentences: sentences.length,
  };
}

export function countWords(text: string): number {
  return text.split(/\s+/).filter(Boolean).length;
}

/** The prose of a page: code, comments and link targets are blank, every line stays where it was. */
export function proseOf(markdown: string): string {
  const blank = (match: string): string => match.replace(/[^\n]/g, " ");
  return markdown
    .replace(/```[\s\S]*?```/g, blank)
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/`[^`\n]*`/g, (code) => "X".padEnd(code.length))
    .replace(/\]\([^)\n]*\)/g, (link) => "]".padEnd(link.length));
}

export type PageKind = "user" | "generated" | "contributor";

const CONTRIBUTOR_PAGES =
  /^(?:docs\/(?:adding|adr|design|internals)\/|docs\/architecture\.md|src\/|CONTRIBUTING)/;

/** Who a page is for, and whether a program writes it. */
export function pageKind({ path, text }: { path: string; text: string }): PageKind {
  if (CONTRIBUTOR_PAGES.test(path)) return "contributor";
  return /<!-- (?:Generated|Made) from /.test(text) ? "generated" : "user";
}

const MAX_WORDS = { paragraph: 60, bullet: 30, cell: 20 } as const;

export interface LongPart {
  readonly kind: keyof typeof MAX_WORDS;
  readonly line: number;
  readonly words: number;
}

/** Paragraphs, bullets and table cells of a page that are longer than a reader follows. */
export function longParts(markdown: string): LongPart[] {
  const lines = proseOf(markdown).split("\n");
  const parts: LongPart[] = [];
  let open: { kind: "paragraph" | "bullet"; line: number; text: string } | undefined;
  const add = (kind: LongPart["kind"], line: number, text: string): void => {
    const words = countWords(text);
    if (words > MAX_WORDS[kind]) parts.push({ kind, line, words });
  };
  const close = (): void => {
    if (open !== undefined) add(open.kind, open.line, open.text);
    open = undefined;
  };
  for (const [i, line] of lines.entries()) {
    const bullet = /^\s*(?:[-*]|\d+\.)\s+(.*)/.exec(line)?.[1];
    if (line.trim() === "" || line.startsWith("#")) close();
    else if (line.startsWith("|")) {
      close();
      for (const cell of line.split("|")) add("cell", i + 1, cell);
    } else if (bullet !== undefined) {
      close();
      open = { kind: "bullet", line: i + 1, text: bullet };
    } else if (open === undefined) open = { kind: "paragraph", line: i + 1, text: line };
    else open.text += `\n${line}`;
  }
  close();
  return parts;
}

const EXPORTED =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|class|const|let|interface|type|enum) (\w+)/gm;
const BARE_WORD = /^(?:[a-z]+|[A-Z][a-z]+|[A-Z]+)$/;

/** Exported names of one bare word: at the call site they say nothing. */
export function bareNames(code: string): string[] {
  return [...code.matchAll(EXPORTED)].map(([, name]) => name!).filter((name) => BARE_WORD.test(name));
}

const MAX_SUBJECT = 60;
const NOT_IMPERATIVE =
  /^(?:The|An?|What|Where|When|Who|This|That|These|Those|It|Its|No|Not|Every|Each|All|Some|There|Of|In|On|By|With|[A-Z]\w*(?:ed|ing))\b/;

/** Problems of a commit subject: `gateway: retry lost upstream connection` and `Add grants` have none. */
export function subjectProblems(subject: string): string[] {
  const verb = subject.replace(/^[\w./-]+: */, "");
  return [
    ...(subject.length > MAX_SUBJECT ? [`${subject.length} characters, ${MAX_SUBJECT} at most`] : []),
    ...(NOT_IMPERATIVE.test(verb) ? ["begin with a verb in the imperative"] : []),
  ];
}
