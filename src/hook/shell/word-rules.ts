/** Rules for single words of programs that read theirs in a way of their own. */
import { dirname, resolve } from "node:path";
import { braces } from "../globs.ts";
import type { ShellClass } from "./classes.ts";
import { readOptions } from "./options.ts";
import type { Word } from "./parts.ts";
import { GIT_RUNS, GIT_RUNS_OPTION } from "./programs.ts";
import type { WordRole } from "./roles.ts";
import { isPlainSed } from "./sed-script.ts";
import { knownProgram } from "./tables.ts";

export const FIND_RUNS = /^-(?:exec|execdir|ok|okdir)$/;

/** Builtins that change the shell they run in. */
export const OF_THE_SHELL =
  /^(?:cd|pushd|popd|export|unset|set|local|readonly|exit|return|break|continue|shift|umask)$/;

/** Folders in which a system keeps programs that others than the agent put there. */
const PROGRAM_FOLDERS = /^(?:\/(?:usr\/(?:local\/)?)?s?bin|\/opt\/homebrew\/bin)$/;

/** A word without a path is looked up by the shell; with one, it counts where programs are installed. */
export function isInstalled(path: string, kind: ShellClass): boolean {
  if (!path.includes("/")) return true;
  if (path.startsWith("/")) return PROGRAM_FOLDERS.test(dirname(resolve(path)));
  return kind === "build" && /^(?:\.\/)?node_modules\/\.bin\/[\w.-]+$/.test(path);
}

/** Its text is known at run time alone; what only prints it may get any of a loop's values. */
export const hasOpenText = ({ dynamic, several }: Word, program: string): boolean =>
  dynamic || (several && program !== "echo");

export function isSedSafe(text: string, role: WordRole): boolean {
  return role !== "sed" || isPlainSed(text.replace(/^(?:-[nErsuz]*e|--expression=)/, ""));
}

/** The words of `find` without the programs that it runs, which are judged by themselves. */
export function withoutRunPrograms(texts: readonly string[]): string[] {
  let runs = false;
  return texts.filter((text) => {
    if (FIND_RUNS.test(text)) runs = true;
    const own = !runs;
    if (runs && /^[;+]$/.test(text)) runs = false;
    return own;
  });
}

/** `tar czf x`: every letter counts as an option of its own. */
export function oldTarClasses(letters: string): ShellClass[] {
  const row = knownProgram("tar")!;
  return [...letters].flatMap((letter) => readOptions(row, [`-${letter}`, "x"]).classes);
}

/** The shell makes further words of this one, and one of them may begin with a dash. */
export function mayBeOption({ text, glob }: Word): boolean {
  if (!glob) return false;
  const words = braces(text);
  return words.length > 1 && words.some((word) => word.startsWith("-"));
}

/** The mark that `xargs` puts names in for. */
export function replaceMark(options: readonly string[]): string {
  const at = options.findIndex((text) => /^(?:-I|--replace)/.test(text));
  if (at < 0) return "{}";
  return /^(?:-I|--replace=)(.+)$/.exec(options[at]!)?.[1] ?? options[at + 1] ?? "{}";
}

/** What git runs for each commit, submodule or match: scripts, and programs with their words. */
export function runByGit(rest: readonly Word[]): { scripts: Word[]; programs: Word[][] } {
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
 * The program that `npx` and its kin are to run, and its words. `installed`: nothing says that another version or
 * package is fetched for it, or that Node starts in another way.
 */
export function runnerWords(rest: readonly Word[]): { words: Word[]; installed: boolean } {
  let at = 0;
  while (at < rest.length && rest[at]!.text.startsWith("-"))
    at += /^(?:-p|--package|-c|--call)$/.test(rest[at]!.text) ? 2 : 1;
  const [program, ...words] = rest.slice(at);
  if (program === undefined) return { words: [], installed: false };
  const text = program.text.replace(/(?<=.)@[^/]*$/, "");
  const usual = rest
    .slice(0, at)
    .every((option) => /^(?:--|--no|--no-install|--yes|-y|--silent|--quiet|-q)$/.test(option.text));
  return { words: [{ ...program, text }, ...words], installed: usual && text === program.text };
}
