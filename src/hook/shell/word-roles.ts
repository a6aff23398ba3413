/**
 * Roles of the words of a program. Most words may name a file. A commit message or a search pattern is text and names
 * none. A script may name files and programs in its own language.
 */
import { commandOf } from "./programs.ts";

export type WordRole = "plain" | "text" | "said" | "sed" | "code";

const SEARCH = /^(?:[efz]?grep|rg|ag|ack)$/;
const AWK = /^[gmn]?awk$/;
const QUERY = /^[jy]q$/;
/** An option or a file contains the pattern or script, so every other word is a file. */
const GIVEN = /^(?:-[a-zA-Z]*[ef]|--(?:reg|ex[ep]|match|so|file(?:=|$)))/;
const QUERY_GIVEN = /^(?:-[a-zA-Z]*f|--(?:from-file|exp))/;

const NEVER = /(?!)/;

interface TextOption {
  program: RegExp;
  first?: RegExp;
  /** The next word is the text. */
  option: RegExp;
  /** The same word contains the text. */
  sticky: RegExp;
  /** Options without a value. After any other option this one could be its value, and the next word a file. */
  flags: RegExp;
  /** Also allowed after plain words, where some programs treat every further word as a file. */
  anywhere: boolean;
}

const GREP_FLAGS = /^-[abchHiIlLnoqrRsTuUvwxyzEFGP]+$/;
/** Excludes `-r` and `-E`, which take a value in some of these programs. */
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
  // Excluded files are not touched. `--exclude-from` names a file that is read.
  {
    program: /^(?:[efz]?grep|diff|du|fd|rsync|tar)$/,
    option: /^--exclude(?:-dir)?$/,
    sticky: /^--exclude(?:-dir)?=/,
    flags: /^-[achilnopqrtuvwzP]+$/,
    anywhere: false,
  },
];

/** Programs that test a name without opening a file. */
const ASKS = /^(?:test|\[\[?)$/;
/** Text that the shell may execute, as in an array index: `[ 'a[$(..)]' -eq 0 ]`. */
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

/** Positions of the words that an option marks as text, read from left to right like the program does. */
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

/** Position of the excluded name in `find .. ! -name <this>`. -1 if the command has further conditions. */
function leftOut(texts: readonly string[]): number {
  const nots = texts.flatMap((text, at) => (/^(?:!|-not)$/.test(text) ? [at] : []));
  const only = nots.length === 1 && /^-i?name$/.test(texts[nots[0]! + 1] ?? "");
  return only && !texts.includes("(") ? nots[0]! + 2 : -1;
}

/** Position of the pattern or script. -1 if no word is one by its position. */
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

/** Files that a script names in its own language. */
export function filesInScript(text: string, role: WordRole): string[] {
  if (role === "sed") return filesOfSed(text);
  return role === "code" ? quotedIn(text).flatMap((one) => [...pathPieces(one)]) : [];
}

/** Start of a sed command. After an address or a substitution, a letter may also belong to that. */
const SED_FILE =
  /(?:(?<=^|[\s;{}\d$])[rRwW](?=[ \t]*([^\n]{1,4096}))|(?<=[/|,#gpIiMme!])[rRwW](?=[ \t]+([^\n]{1,4096})|([./~][^\n]{1,4096})))/gm;

/** Files that a sed script reads or writes: the rest of the line after `r`, `R`, `w` or `W`. */
function filesOfSed(script: string): string[] {
  const bare = script.replace(/^(?:-[nErsuz]*e|--exp[a-z]*=)/, "");
  const found = [...bare.matchAll(SED_FILE)].map(([, ...groups]) =>
    groups.find((one) => one !== undefined)!.trim(),
  );
  const short = found.map((rest) => /^[^\s;}]*/.exec(rest)![0]).filter((one) => one !== "");
  return [...found.slice(0, MAX_LINES), ...short];
}

/** How many complete lines are checked. */
const MAX_LINES = 50;

/** Quoted text, which contains file names and commands in most languages. */
function quotedIn(code: string): string[] {
  return [...code.matchAll(/(["'`])((?:\\.|(?!\1)[^\\])*)\1/gs)].map(([, , text]) => text!);
}

/** All parts of a text that could be a path. */
export function pathPieces(text: string): Set<string> {
  const parts = text.split(/[=:,]|@(?!~\d*(?:$|[~^:]))/);
  const pieces = new Set([text, ...parts, text.replace(/^-[a-zA-Z]/, "")]);
  if (/[\s'"`<>|;()&]/.test(text)) for (const piece of text.split(/[\s'"`<>|;()&=,:@{}]+/)) pieces.add(piece);
  pieces.delete("");
  return pieces;
}
