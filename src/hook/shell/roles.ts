/**
 * What each word is to the program that gets it. Most may name a file; a commit's message or a search's pattern is
 * text and names none; a script may name files and programs in its own language.
 */

import { commandOf } from "./programs.ts";

export type WordRole = "plain" | "text" | "said" | "sed" | "code";

const SEARCH = /^(?:[efz]?grep|rg|ag|ack)$/;
const AWK = /^[gmn]?awk$/;
const QUERY = /^[jy]q$/;
/** The pattern or script stands behind an option, or in a file: then every other word is a file. */
const GIVEN = /^(?:-[a-zA-Z]*[ef]|--(?:reg|ex[ep]|match|so|file(?:=|$)))/;
const QUERY_GIVEN = /^(?:-[a-zA-Z]*f|--(?:from-file|exp))/;

const NEVER = /(?!)/;

interface TextOption {
  program: RegExp;
  first?: RegExp;
  /** The word behind it is the text. */
  option: RegExp;
  /** The text stands in the same word. */
  sticky: RegExp;
  /** Options without a value: behind any other one this could be its value, and the word behind it a file. */
  flags: RegExp;
  /** Also behind plain words, after which some programs take every word for a file. */
  anywhere: boolean;
}

const GREP_FLAGS = /^-[abchHiIlLnoqrRsTuUvwxyzEFGP]+$/;
/** Fewer: to some of these `-r` and `-E` have a value. */
const TREE_SEARCH_FLAGS = /^-[acFHiIlLnoqsuUvwxz]+$/;

const TEXT_OPTIONS: readonly TextOption[] = [
  {
    program: /^git$/,
    first: /^(?:commit|tag|merge|notes|stash)$/,
    option: /^(?:-[aefinopqsuv]*m|--message)$/,
    sticky: /^(?:-m.|--message=)/,
    flags:
      /^(?:-[aefinopqsuv]+|--(?:all|amend|allow-empty|annotate|no-(?:verify|edit|ff)|quiet|sign|signoff|verbose))$/,
    anywhere: true,
  },
  {
    program: /^(?:gh|glab)$/,
    option: /^(?:-[tbn]|--(?:title|body|notes|description|message))$/,
    sticky: /^--(?:title|body|notes|description|message)=/,
    flags: /^--(?:draft|fill|web|private|public|prerelease|latest|yes)$/,
    anywhere: true,
  },
  {
    program: /^(?:vitest|jest|mocha|ava|playwright|pytest|npm|pnpm|yarn|bun)$/,
    option: /^(?:-[tkg]|--(?:grep|testNamePattern|test-name-pattern))$/,
    sticky: /^--(?:grep|testNamePattern|test-name-pattern)=/,
    flags: /^--(?:run|watch|coverage|verbose|silent|bail|ci|headed)?$/,
    anywhere: true,
  },
  {
    program: /^[efz]?grep$/,
    option: /^(?:-[abchHiIlLnoqrRsTuUvwxyzEFGP]*e|--regexp)$/,
    sticky: /^--regexp=/,
    flags: GREP_FLAGS,
    anywhere: true,
  },
  {
    program: /^(?:rg|ag|ack)$/,
    option: /^(?:-[acFHiIlLnoqsuUvwxz]*e|--regexp)$/,
    sticky: /^--regexp=/,
    flags: TREE_SEARCH_FLAGS,
    anywhere: true,
  },
  { program: /^git$/, first: /^grep$/, option: /^-e$/, sticky: NEVER, flags: GREP_FLAGS, anywhere: true },
  // What is left out is not touched; `--exclude-from` names a file.
  {
    program: /^(?:[efz]?grep|diff|du|fd|rsync|tar)$/,
    option: /^--exclude(?:-dir)?$/,
    sticky: /^--exclude(?:-dir)?=/,
    flags: /^-[achilnopqrtuvwzP]+$/,
    anywhere: false,
  },
];

/** Programs that ask about a name and open no file. */
const ASKS = /^(?:test|\[\[?)$/;
/** The shell carries out what stands in an index: `[ 'a[$(..)]' -eq 0 ]`. */
const SAYS_MORE = /[$`[\s]/;

export function rolesOf(name: string, texts: readonly string[], piped: boolean): WordRole[] {
  if (ASKS.test(name) || (name === "git" && texts[0] === "check-ignore"))
    return texts.map((text) => (SAYS_MORE.test(text) ? "plain" : "text"));
  const command = commandOf(texts);
  const given = givenTexts(name, texts, command);
  const left_out = name === "find" ? leftOut(texts) : -1;
  const first = firstIs(name, texts, command, given);
  return texts.map((text, at) => {
    const before = texts[at - 1] ?? "";
    if (given.has(at) || at === left_out) return "text";
    if (name === "sed") return roleForSed(text, before, first === at);
    if (first === at) return AWK.test(name) || name === "yq" ? "code" : "text";
    if (AWK.test(name) && /[{"]/.test(text)) return "code";
    return /^(?:echo|printf)$/.test(name) && !piped && /\s/.test(text) ? "said" : "plain";
  });
}

/** The words that an option says are text, read from the left as the program reads them. */
function givenTexts(name: string, texts: readonly string[], command: string | undefined): Set<number> {
  const options = TEXT_OPTIONS.filter(
    ({ program, first }) => program.test(name) && (first === undefined || first.test(command ?? "")),
  );
  const found = new Set<number>();
  const isOption = (at: number): boolean =>
    options.some(({ option, flags, anywhere }) => {
      const passed = (text: string, place: number) =>
        found.has(place) || flags.test(text) || (anywhere && !text.startsWith("-"));
      const before = texts.slice(0, at);
      return (
        option.test(texts[at]!) && before.every((text, place) => passed(text, place) || option.test(text))
      );
    });
  for (let at = 0; at < texts.length && texts[at] !== "--"; at++) {
    if (options.some(({ sticky }) => sticky.test(texts[at]!))) found.add(at);
    else if (isOption(at)) found.add(++at);
  }
  return found;
}

/** `find .. ! -name <this>`: what it is not to find. -1 where there is more than that one condition to read. */
function leftOut(texts: readonly string[]): number {
  const nots = texts.flatMap((text, at) => (/^(?:!|-not)$/.test(text) ? [at] : []));
  const only = nots.length === 1 && /^-i?name$/.test(texts[nots[0]! + 1] ?? "");
  return only && !texts.includes("(") ? nots[0]! + 2 : -1;
}

/** Where the pattern or script stands; -1 where none of the words is one by its place. */
function firstIs(
  name: string,
  texts: readonly string[],
  command: string | undefined,
  passed: ReadonlySet<number>,
): number {
  const isFirst = name === "sed" || [SEARCH, AWK, QUERY].some((programs) => programs.test(name));
  const isGrep = name === "git" && command === "grep";
  const given = QUERY.test(name) ? QUERY_GIVEN : GIVEN;
  if ((!isFirst && !isGrep) || texts.some((text) => given.test(text))) return -1;
  const valued = AWK.test(name) ? /^-[vF]$/ : NEVER;
  const from = isGrep ? texts.indexOf("grep") + 1 : 0;
  return texts.findIndex(
    (text, at) => at >= from && !passed.has(at) && !text.startsWith("-") && !valued.test(texts[at - 1] ?? ""),
  );
}

function roleForSed(text: string, before: string, first: boolean): WordRole {
  const follows = /^(?:-[a-zA-Z]*e|--exp[a-z]*)$/.test(before);
  return first || follows || /^(?:-[a-zA-Z]*e.|--exp[a-z]*=)/.test(text) ? "sed" : "plain";
}

/** What a script names in its own way. */
export function filesIn(text: string, role: WordRole): string[] {
  if (role === "sed") return filesOfSed(text);
  return role === "code" ? quotedIn(text).flatMap((one) => [...pathPieces(one)]) : [];
}

/** Where a command of sed begins; behind an address or a substitution a letter may be a part of that as well. */
const SED_FILE =
  /(?:(?<=^|[\s;{}\d$])[rRwW](?=[ \t]*([^\n]{1,4096}))|(?<=[/|,#gpIiMme!])[rRwW](?=[ \t]+([^\n]{1,4096})|([./~][^\n]{1,4096})))/gm;

/** Files that a sed script reads or writes: what stands behind `r`, `R`, `w` or `W`, up to the end of its line. */
function filesOfSed(script: string): string[] {
  const bare = script.replace(/^(?:-[nErsuz]*e|--exp[a-z]*=)/, "");
  const found = [...bare.matchAll(SED_FILE)].map(([, ...groups]) =>
    groups.find((one) => one !== undefined)!.trim(),
  );
  const short = found.map((rest) => /^[^\s;}]*/.exec(rest)![0]).filter((one) => one !== "");
  return [...found.slice(0, MOST_LINES), ...short];
}

/** Whole lines are looked at so many times. */
const MOST_LINES = 50;

/** Texts in quotes, in which most languages name files and commands. */
function quotedIn(code: string): string[] {
  return [...code.matchAll(/(["'`])((?:\\.|(?!\1)[^\\])*)\1/gs)].map(([, , text]) => text!);
}

/** Every part of a text that could be a path by itself. */
export function pathPieces(text: string): Set<string> {
  const parts = text.split(/[=:,]|@(?!~\d*(?:$|[~^:]))/);
  const pieces = new Set([text, ...parts, text.replace(/^-[a-zA-Z]/, "")]);
  if (/[\s'"`<>|;()&]/.test(text)) for (const piece of text.split(/[\s'"`<>|;()&=,:@{}]+/)) pieces.add(piece);
  pieces.delete("");
  return pieces;
}
