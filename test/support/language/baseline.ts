/** The language of the whole repository in figures, and the baseline that they may not exceed. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { allTexts, filesUnder, ROOT, type SourceFile, sourceFile } from "../files.ts";
import {
  bannedPhrases,
  bareNames,
  countWords,
  longParts,
  type PhraseMatch,
  pageKind,
  proseOf,
} from "./measure.ts";

const BASELINE = join(ROOT, "test/support/language/baseline.json");

export interface LanguageCounts {
  /** Banned phrases in the documentation, code comments, texts that people read on a surface, and test titles. */
  marks: { documentation: number; comments: number; messages: number; titles: number };
  /** Parts of documentation pages that are too long. */
  long: { paragraphs: number; bullets: number; cells: number };
  /** Exported names of one bare word, sorted. */
  bare_names: string[];
}

export function documentationPages(): SourceFile[] {
  return allTexts().filter(
    ({ path }) => path.endsWith(".md") && !path.startsWith("test/") && !path.startsWith("bench/results/"),
  );
}

export function shippedSources(): SourceFile[] {
  return filesUnder("src", ".ts")
    .filter((path) => !path.endsWith(".test.ts"))
    .map(sourceFile);
}

/** The comments of a source; everything else is blank, so that lines stay where they were. */
export function commentsOf({ text, withStrings }: SourceFile): string {
  let comments = "";
  for (let i = 0; i < text.length; i++) {
    const isComment = withStrings[i] === " " && text[i] !== " ";
    comments += text[i] === "\n" || isComment ? text[i] : " ";
  }
  return comments.replace(/^(\s*)(\/\*\*?|\*(?!\/)|\/\/)|\*+\/|\/\//gm, (mark) => mark.replace(/[/*]/g, " "));
}

/** The texts in quotes; everything else is blank. */
export function messagesOf({ code, withStrings }: SourceFile): string {
  let messages = "";
  for (let i = 0; i < withStrings.length; i++) {
    const isText = code[i] === " " && withStrings[i] !== " ";
    messages += withStrings[i] === "\n" || isText ? withStrings[i] : " ";
  }
  return messages;
}

/** Tests of every directory. */
export function testSources(): SourceFile[] {
  return ["src", "test", "stress"].flatMap((folder) => filesUnder(folder, ".test.ts")).map(sourceFile);
}

const TITLE = /\b(?:it|test|describe)(?:\.\w+)*\([^"`\n]*(?:"((?:[^"\\\n]|\\.)+)"|`((?:[^`\\$\n]|\\.)+))/g;

/** The titles of tests; everything else is blank. */
export function titlesOf({ text }: SourceFile): string {
  const titles = text.replace(/[^\n]/g, " ").split("");
  for (const match of text.matchAll(TITLE)) {
    const title = match[1] ?? match[2]!;
    const start = match.index + match[0].lastIndexOf(title);
    for (let i = 0; i < title.length; i++) titles[start + i] = title[i]!;
  }
  return titles.join("");
}

export interface PlacedPhrase extends PhraseMatch {
  readonly path: string;
  readonly line: number;
}

function placed({ path }: SourceFile, text: string): PlacedPhrase[] {
  return bannedPhrases(text).map((match) => ({
    ...match,
    path,
    line: text.slice(0, match.index).split("\n").length,
  }));
}

export interface RepositoryPhrases {
  documentation: PlacedPhrase[];
  comments: PlacedPhrase[];
  messages: PlacedPhrase[];
  titles: PlacedPhrase[];
}

export function repositoryPhrases(): RepositoryPhrases {
  const sources = shippedSources();
  return {
    documentation: documentationPages().flatMap((page) => placed(page, proseOf(page.text))),
    comments: sources.flatMap((source) => placed(source, commentsOf(source))),
    messages: sources.flatMap((source) => placed(source, messagesOf(source))),
    titles: testSources().flatMap((source) => placed(source, titlesOf(source))),
  };
}

export function countLanguage(): LanguageCounts {
  const { documentation, comments, messages, titles } = repositoryPhrases();
  const parts = documentationPages().flatMap(({ text }) => longParts(text));
  const long = (kind: string): number => parts.filter((part) => part.kind === kind).length;
  return {
    marks: {
      documentation: documentation.length,
      comments: comments.length,
      messages: messages.length,
      titles: titles.length,
    },
    long: { paragraphs: long("paragraph"), bullets: long("bullet"), cells: long("cell") },
    bare_names: [...new Set(shippedSources().flatMap(({ code }) => bareNames(code)))].sort(),
  };
}

export function readBaseline(): LanguageCounts {
  return JSON.parse(readFileSync(BASELINE, "utf8")) as LanguageCounts;
}

/** Writes the counts as the new baseline; counts that grew are refused. */
export function lowerBaseline(counts: LanguageCounts): void {
  const grown = growth(counts, readBaseline());
  if (grown.length > 0) throw new Error(`the baseline only shrinks: ${grown.join("; ")}`);
  writeFileSync(BASELINE, `${JSON.stringify(counts, null, 2)}\n`);
}

/** 32,000 words, and 1,200 for each of the nine features that were added to them. */
export const MAX_USER_WORDS = 32_000 + 9 * 1_200;

/** Words of the pages for users that a person wrote. */
export function userWords(): number {
  return documentationPages()
    .filter((page) => pageKind(page) === "user")
    .reduce((words, { text }) => words + countWords(proseOf(text)), 0);
}

/** Every figure above its baseline, as a sentence. */
export function growth(counts: LanguageCounts, baseline: LanguageCounts): string[] {
  const grown: string[] = [];
  for (const group of ["marks", "long"] as const)
    for (const [name, count] of Object.entries(counts[group])) {
      const allowed = (baseline[group] as Record<string, number>)[name] ?? 0;
      if (count > allowed) grown.push(`${group} in ${name}: ${count}, the baseline is ${allowed}`);
    }
  const known = new Set(baseline.bare_names);
  const added = counts.bare_names.filter((name) => !known.has(name));
  if (added.length > 0) grown.push(`exported names of one bare word: ${added.join(", ")}`);
  return grown;
}
