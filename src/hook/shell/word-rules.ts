/** Rules for single words of programs with an unusual syntax. */
import { basename, dirname, resolve } from "node:path";
import { expandShellBraces, filesMatching } from "../workspace/globs.ts";
import { isProjectClass, type ShellClass } from "./classes.ts";
import type { ShellWord } from "./command-parts.ts";
import { readOptions } from "./options.ts";
import { GIT_RUNS, GIT_RUNS_OPTION } from "./programs.ts";
import { isPlainSed } from "./sed-script.ts";
import { hasSubcommands, knownProgram } from "./tables/tables.ts";
import type { WordRole } from "./word-roles.ts";

export const FIND_RUNS = /^-(?:exec|execdir|ok|okdir)$/;

/** Builtins that change their shell. */
export const OF_THE_SHELL =
  /^(?:cd|pushd|popd|export|unset|set|local|readonly|exit|return|break|continue|shift|umask)$/;

/** System directories for programs that the agent did not install. */
const PROGRAM_FOLDERS = /^(?:\/(?:usr\/(?:local\/)?)?s?bin|\/opt\/homebrew\/bin)$/;

/** Programs of the project that the tables name. */
const OF_THE_PROJECT = /^(?:(?:\.\/)?(?:node_modules\/\.bin|\.venv\/bin)\/[\w.-]+|\.\/(?:gradlew|mvnw))$/;

/** Whether a program comes from a trusted location. The shell looks up a name without a path. */
export function isInstalled(path: string, kind: ShellClass): boolean {
  if (!path.includes("/")) return !/^(?:gradlew|mvnw)$/.test(path);
  if (path.startsWith("/")) return PROGRAM_FOLDERS.test(dirname(resolve(path)));
  return isProjectClass(kind) && OF_THE_PROJECT.test(path);
}

/** Whether the tables have it as a test or build tool. */
export const isProjectProgram = (name: string): boolean =>
  isProjectClass(knownProgram(name)?.class ?? "unknown");

/** Whether the word's text depends on the execution. */
export const hasOpenText = ({ dynamic, several }: ShellWord): boolean => dynamic || several;

/** Comparisons of text. All others may evaluate their operands as arithmetic, and arithmetic can run commands. */
const COMPARES_TEXT = /^(?:=|==|!=|-z|-n|!|\]|\]\])$/;
const HARMLESS_FORMAT = /^(?!-)(?:[^%]|%%|%[-+ #0-9.]*[sdiuxXofegbq])*$/s;

/** Programs whose plain words are files that they only read. */
const READS_FILES = /^(?:diff|cmp|comm|cat|head|tail|wc|sort|paste|join)$/;

/**
 * Whether the text of a word depends on the execution and reaches more than a program that prints or compares it.
 * Inherited variables may hold secrets, so they are not printed.
 */
export function hasOpenWords(program: string, words: readonly ShellWord[]): boolean {
  const open = words.filter(
    (word) => hasOpenText(word) && !(word.of_command === true && READS_FILES.test(program)),
  );
  if (open.length === 0) return false;
  if (open.some(({ inherited }) => inherited)) return true;
  if (program === "echo" || program === ":") return false;
  if (program === "printf")
    return hasOpenText(words[0]!) || words[0]!.glob || !HARMLESS_FORMAT.test(words[0]!.text);
  if (!/^(?:test|\[\[?)$/.test(program)) return true;
  const operators = words.filter(({ text, expanded }) => !expanded && /^-|^[=!<>]/.test(text));
  return (
    (program !== "[[" && open.some(({ loose }) => loose)) ||
    !operators.every(({ text }) => COMPARES_TEXT.test(text))
  );
}

export function isSedSafe(text: string, role: WordRole): boolean {
  return role !== "sed" || isPlainSed(text.replace(/^(?:-[nErsuz]*e|--expression=)/, ""));
}

/** The words of `find` without the programs that it runs, which are classified separately. */
export function withoutRunPrograms(texts: readonly string[]): string[] {
  let runs = false;
  return texts.filter((text) => {
    if (FIND_RUNS.test(text)) runs = true;
    const own = !runs;
    if (runs && /^[;+]$/.test(text)) runs = false;
    return own;
  });
}

/** Classes of `tar czf x`, where every letter is a separate option. */
export function oldTarClasses(letters: string): ShellClass[] {
  const row = knownProgram("tar")!;
  return [...letters].flatMap((letter) => readOptions(row, [`-${letter}`, "x"]).classes);
}

/** Whether the shell may expand this word to one that begins with a dash. */
export function mayBeOption({ text, glob }: ShellWord, folders: readonly string[]): boolean {
  if (!glob) return false;
  const words = expandShellBraces(text);
  if (words.length > 1 && words.some((word) => word.startsWith("-"))) return true;
  // A file can have the name of an option.
  const leading = words.filter((word) => /^[*?[]/.test(word) && !word.includes("/"));
  return leading.some((word) =>
    folders.some((folder) =>
      (filesMatching(word, folder) ?? ["-"]).some((file) => basename(file).startsWith("-")),
    ),
  );
}

/** Whether file names instead of the mark would be a program, its subcommand, or a part of a word. */
export function isMarkUnsafe(words: readonly ShellWord[], mark: string): boolean {
  const [program, first] = words;
  const isSubcommand = first?.text === mark && hasSubcommands(basename(program!.text));
  const isPart = words.some(({ text }) => text !== mark && text.includes(mark));
  return program?.text === mark || isSubcommand || isPart;
}

/** The placeholder that `xargs` replaces with names. */
export function replaceMark(options: readonly string[]): string {
  const at = options.findIndex((text) => /^(?:-I|--replace)/.test(text));
  if (at < 0) return "{}";
  return /^(?:-I|--replace=)(.+)$/.exec(options[at]!)?.[1] ?? options[at + 1] ?? "{}";
}

/** Scripts and programs that git runs for each commit, submodule or match. */
export function runByGit(rest: readonly ShellWord[]): { scripts: ShellWord[]; programs: ShellWord[][] } {
  const rebases = rest.some(({ text }) => text === "rebase");
  const scripts = rest.flatMap((word, at) => {
    const [option, sticky = ""] = GIT_RUNS_OPTION.exec(word.text) ?? [];
    if (!rebases || option === undefined) return [];
    return sticky === "" ? rest.slice(at + 1, at + 2) : [{ ...word, text: sticky }];
  });
  const programs = rest.flatMap(({ text }, at) =>
    at > 0 && GIT_RUNS.test(text) && /^(?:bisect|submodule)$/.test(rest[at - 1]!.text)
      ? [rest.slice(at + 1)]
      : [],
  );
  return { scripts, programs };
}

/**
 * The program for `npx` and similar tools, and its words. `installed`: no option fetches another version or package, or
 * changes how Node starts.
 */
export function runnerWords(rest: readonly ShellWord[]): { words: ShellWord[]; installed: boolean } {
  let at = 0;
  while (at < rest.length && rest[at]!.text.startsWith("-"))
    at += /^(?:-p|--package|-c|--call)$/.test(rest[at]!.text) ? 2 : 1;
  const [program, ...words] = rest.slice(at);
  if (program === undefined) return { words: [], installed: false };
  const version = program.text.indexOf("@", Math.max(program.text.lastIndexOf("/") + 1, 1));
  const text = version < 0 ? program.text : program.text.slice(0, version);
  const usual = rest
    .slice(0, at)
    .every((option) => /^(?:--|--no|--no-install|--yes|-y|--silent|--quiet|-q)$/.test(option.text));
  return { words: [{ ...program, text }, ...words], installed: usual && text === program.text };
}
