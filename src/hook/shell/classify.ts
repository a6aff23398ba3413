/**
 * What a shell command does, as far as it can be read: its class, and what it touches that it may not. Wrappers
 * (`env`, `xargs`, `npx`, ..) are looked through; what cannot be read, word by word, counts as unknown.
 */
import { basename } from "node:path";
import type { Guard } from "../guard.ts";
import type { Place } from "../homes.ts";
import { POWERSHELL } from "../powershell.ts";
import { type ShellClass, worst } from "./classes.ts";
import { Findings } from "./findings.ts";
import { readOptions } from "./options.ts";
import type { CommandPart, Word } from "./parts.ts";
import { listsFiles, type Producer } from "./pipelines.ts";
import {
  classesOf,
  DEVICES,
  INTERPRETERS,
  interpreted,
  isObeyed,
  KEEPS_TEXT,
  PRINT_VARIABLES,
  RUNNERS,
  SHELLS,
  SOCKETS,
  turnedInto,
  WRAPPER_WORDS,
} from "./programs.ts";
import { rolesOf, type WordRole } from "./roles.ts";
import { isDecidingCommand } from "./svc-command.ts";
import { knownProgram, knownWrapper } from "./tables.ts";
import { ASSIGNMENT } from "./variables.ts";
import {
  FIND_RUNS,
  hasOpenText,
  isInstalled,
  isSedSafe,
  mayBeOption,
  OF_THE_SHELL,
  oldTarClasses,
  replaceMark,
  runByGit,
  runnerWords,
  withoutRunPrograms,
} from "./word-rules.ts";
import { ENDS, KEYWORDS, parseScript } from "./words.ts";

export interface Judged {
  class: ShellClass;
  /** Why it is refused whatever the class; empty where nothing protected was found. */
  touches: string[];
  /** Something of it still runs when the command ends. */
  background: boolean;
}

export function judgeCommand(command: string, place: Place, guard: Guard): Judged {
  const findings = new Findings(place, guard);
  const judge = new Judge(findings);
  judge.script(command, 0);
  const { classes, touches } = findings;
  // A person looks at a change of what something runs by itself.
  if (findings.names_unasked && worst(classes) !== "read") classes.push("unknown");
  // Text that only running would explain.
  if (classes.includes("unknown")) findings.note(guard.text(command));
  return { class: worst(classes), touches: [...touches], background: judge.background };
}

/** What a program is fed with, and whether another gets what it prints. */
interface Fed {
  text: string | null;
  piped: boolean;
}
const NOTHING: Fed = { text: null, piped: false };
const plainWord = (text: string): Word => ({
  text,
  dynamic: false,
  glob: false,
  expanded: false,
  several: false,
});

class Judge {
  private readonly findings: Findings;
  /** Whether a `find` before has listed files among which are protected ones; null where there was none. */
  private listed: boolean | null = null;
  /** The programs before this one in its pipeline. */
  private producers: Producer[] = [];
  /** The folders outside of each subshell that is open. */
  private outside: { shell: number; folders: readonly string[] }[] = [];
  /** The folders before a `cd` that is only known to have worked while its chain of `&&` lasts. */
  private left: readonly string[] | null = null;
  /** Whether a part was left running, with nothing that waits for it. */
  background = false;
  /** The part that is being judged. */
  private part_now: CommandPart | null = null;

  constructor(findings: Findings) {
    this.findings = findings;
  }

  script(text: string, depth: number): void {
    const { parts, odd } = parseScript(text, this.findings.known, depth);
    if (odd.length > 0) this.findings.classes.push("unknown");
    if (parts.length === 0) this.findings.classes.push("read");
    const { outside, left, part_now } = this;
    [this.outside, this.left] = [[], null];
    for (const part of parts) this.part(part, depth);
    for (const { folders } of this.outside.splice(0).reverse()) this.findings.folders = folders;
    [this.outside, this.left, this.part_now] = [outside, left, part_now];
  }

  private part(part: CommandPart, depth: number): void {
    const { words, redirects, fed, piped } = part;
    this.enter(part);
    if (part.after === "&") this.background = true;
    if (words[0]?.text === "wait") this.background = false;
    if (!part.reads_pipe) this.producers = [];
    let at = 0;
    while (at < words.length && KEYWORDS.test(words[at]!.text) && !words[at]!.expanded) at++;
    const assigned = at;
    while (at < words.length && ASSIGNMENT.test(words[at]!.text)) at++;
    this.assigned(words.slice(assigned, at));
    for (const { write, target } of redirects) this.redirected(write, target);
    this.call(words.slice(at), { text: fed, piped }, depth);
  }

  /** Where the script is when this part begins: a subshell's folder ends with it. */
  private enter(part: CommandPart): void {
    this.part_now = part;
    while (this.outside.some(({ shell }) => !part.shells.includes(shell)))
      this.findings.folders = this.outside.pop()!.folders;
    for (const shell of part.shells)
      if (!this.outside.some((one) => one.shell === shell))
        this.outside.push({ shell, folders: this.findings.folders });
    if (this.left !== null && !/^(?:&&|\|&?)$/.test(part.before)) {
      this.findings.folders = [...new Set([...this.left, ...this.findings.folders])];
      this.left = null;
    }
    // In which of several folders a name is looked up, only running would tell.
    if (this.findings.folders.length > 1) this.findings.classes.push("unknown");
  }

  /** Variables that are set before a program, by themselves, or by `export` and its kin. */
  private assigned(words: readonly Word[]): void {
    for (const { text, glob } of words) {
      const end = text.indexOf("=");
      if (isObeyed(end < 0 ? text : text.slice(0, end))) this.findings.classes.push("unknown");
      if (end < 0) continue;
      this.findings.decides(text);
      this.findings.touched(text.slice(end + 1), false, glob);
    }
  }

  private redirected(write: boolean, target: Word): void {
    if (hasOpenText(target, "")) this.findings.classes.push("unknown");
    if (write && !DEVICES.test(target.text)) this.findings.classes.push("write");
    if (SOCKETS.test(target.text)) this.findings.classes.push("network");
    this.findings.touched(target.text, false, target.glob);
  }

  /** One program with its words, whatever runs it. */
  private call(words: readonly Word[], fed: Fed, depth: number): void {
    const [first, ...rest] = words;
    if (first === undefined || ENDS.test(first.text)) this.findings.classes.push("read");
    else if (first.text === "for" || first.text === "select") this.loop(rest);
    else this.program(first, rest, fed, depth);
  }

  private program(first: Word, rest: readonly Word[], fed: Fed, depth: number): void {
    const name = basename(first.text);
    const plain = !first.expanded && (!first.glob || /^\[\[?$/.test(first.text));
    if (!plain || rest.some((word) => hasOpenText(word, name))) this.findings.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    if (isDecidingCommand(name, texts)) this.findings.note("it is a deciding svc command");
    if (first.text.includes("/")) this.findings.touched(first.text);
    const before = this.findings.classes.length;
    if (!this.through(name, rest, fed, depth)) {
      this.findings.classes.push(...this.classesOf(first.text, name, rest));
      if (name === "git") this.gitRuns(rest, depth);
      this.findings.given(name, rest, rolesOf(name, texts, fed.piped));
      if (fed.text !== null && (fed.piped || !KEEPS_TEXT.test(name))) this.findings.isFed(fed.text);
      if (/^(?:cd|pushd|popd)$/.test(name)) this.moved(rest);
      if (/^(?:export|local|readonly|unset)$/.test(name)) this.assigned(rest);
    }
    // A path of its own may hide anything behind a known name.
    if (first.text.includes("/") && !isInstalled(first.text, worst(this.findings.classes.slice(before))))
      this.findings.classes.push("unknown");
    this.producers.push({ name, texts });
  }

  private classesOf(path: string, name: string, rest: readonly Word[]): ShellClass[] {
    const texts = rest.map(({ text }) => text);
    if (texts.length === 1 && /^--(?:version|help)$/.test(texts[0]!) && isInstalled(path, "build"))
      return [
        knownProgram(name) === undefined && worst(classesOf(name, [])) === "unknown" ? "unknown" : "read",
      ];
    const own = name === "find" ? withoutRunPrograms(texts) : texts;
    const classes = [...classesOf(name, own), ...turnedInto(name, texts)];
    if (name === "sed" && !texts.every((text, at) => isSedSafe(text, rolesOf(name, texts, false)[at]!)))
      classes.push("unknown");
    if (name === "tar" && /^[a-zA-Z]/.test(texts[0] ?? "")) classes.push(...oldTarClasses(texts[0]!));
    const elsewhere = classes.includes("build") && this.findings.runsElsewhere(texts);
    if (elsewhere || rest.some(mayBeOption)) classes.push("unknown");
    return classes;
  }

  /** The folder that the rest of the script is in. */
  private moved(rest: readonly Word[]): void {
    const { findings, part_now: part } = this;
    const to = findings.target(rest);
    if (to === null || part === null) {
      findings.classes.push("unknown");
      return;
    }
    const before = findings.folders;
    const here = part.nested === 0 && !part.piped && !part.reads_pipe && part.after !== "&";
    const first = /^[;\n(]?$/.test(part.before) && worst(findings.classes) === "read";
    if (here && first && findings.isFolder(to)) findings.folders = [to];
    else if (here && (part.after === "&&" || part.after === "")) {
      findings.folders = [to];
      this.left = [...(this.left ?? []), ...before];
    } else findings.folders = [...new Set([...before, to])];
  }

  /** Looks through a program that runs another; true where it did. */
  private through(name: string, rest: readonly Word[], fed: Fed, depth: number): boolean {
    const texts = rest.map(({ text }) => text);
    if (SHELLS.test(name)) return this.shell(rest, fed, depth);
    if (name === "eval") return this.unread(rest, depth);
    if (/^(?:source|\.|sudo|doas|su)$/.test(name)) {
      this.findings.classes.push("unknown");
      this.findings.given(name, rest, rolesOf(name, texts, false));
      if (knownWrapper(name) !== undefined) this.wrapped(name, rest, fed, depth);
      return true;
    }
    if (name === "env") return this.environment(rest, fed, depth);
    if (name === "xargs") return this.manyTimes(rest, fed, depth);
    if (name === "find") this.found(rest, depth);
    if (name === "git" && texts[0] === "-C" && rest.length > 2) return this.elsewhere(rest, fed, depth);
    if (POWERSHELL.test(name)) return this.findings.spelledForWindows(texts.join(" "));
    if (INTERPRETERS.test(name)) return this.interpreter(name, rest, fed);
    if (name === "printenv" || (PRINT_VARIABLES.test(name) && texts.every((text) => text === "-p")))
      return this.unknown();
    if (WRAPPER_WORDS[name] !== undefined && rest.length > 0) return this.wrapped(name, rest, fed, depth);
    return this.runner(name, rest, depth);
  }

  /** `git -C <folder> ..` is git in that folder. */
  private elsewhere([, folder, ...rest]: readonly Word[], fed: Fed, depth: number): true {
    const { findings } = this;
    const before = findings.folders;
    findings.touched(folder!.text, false, folder!.glob);
    const to = findings.target([folder!]);
    if (to === null) findings.classes.push("unknown");
    else findings.folders = [to];
    this.program(plainWord("git"), rest, fed, depth);
    findings.folders = before;
    return true;
  }

  /** The program behind a wrapper's own options. */
  private wrapped(name: string, rest: readonly Word[], fed: Fed, depth: number): true {
    const texts = rest.map(({ text }) => text);
    const { first, classes } = readOptions(knownWrapper(name)!, texts, true);
    this.ownOptions(rest, first, classes);
    // It only asks where a program is.
    if (name === "command" && texts.slice(0, first).some((text) => /^-[pvV]*[vV]/.test(text))) {
      this.findings.classes.push("read");
      return true;
    }
    const program = rest.slice(first + (WRAPPER_WORDS[name] ?? 0));
    // Another process changes nothing of this shell, and these are programs of the same name at most.
    if (!/^(?:command|builtin)$/.test(name) && OF_THE_SHELL.test(program[0]?.text ?? "")) this.unknown();
    else this.call(program, fed, depth);
    return true;
  }

  private unknown(): true {
    this.findings.classes.push("unknown");
    return true;
  }

  private again(text: string, depth: number): void {
    const { folders } = this.findings;
    this.script(text, depth + 1);
    this.findings.folders = folders;
  }

  /** Words that are a script, or what one is given: which, and with which values, only running would tell. */
  private unread(rest: readonly Word[], depth: number): true {
    this.findings.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    for (const { text, glob } of rest) this.findings.touched(text, false, glob);
    this.findings.decides(texts.join(" "));
    for (const text of texts) if (/\s/.test(text)) this.again(text, depth);
    this.again(texts.filter((text) => !text.startsWith("-")).join(" "), depth);
    return true;
  }

  private shell(rest: readonly Word[], fed: Fed, depth: number): true {
    if (fed.text !== null) this.again(fed.text, depth);
    return this.unread(rest, depth);
  }

  private environment(rest: readonly Word[], fed: Fed, depth: number): true {
    const texts = rest.map(({ text }) => text);
    const { first, classes } = readOptions(knownWrapper("env")!, texts, true);
    this.ownOptions(rest, first, classes);
    let at = first;
    while (at < rest.length && ASSIGNMENT.test(texts[at]!)) at++;
    this.assigned(rest.slice(first, at));
    // Alone it prints every variable; with another folder, relative names mean other files.
    if (at === rest.length || texts.slice(0, first).some((text) => /^(?:-C|--chdir)/.test(text)))
      this.unknown();
    if (OF_THE_SHELL.test(texts[at] ?? "")) this.unknown();
    else if (at < rest.length) this.call(rest.slice(at), fed, depth);
    return true;
  }

  /** Its words come from elsewhere: what only reads may get those that programs found as names of files. */
  private manyTimes(rest: readonly Word[], fed: Fed, depth: number): true {
    const before = this.findings.classes.length;
    const texts = rest.map(({ text }) => text);
    const { first, classes } = readOptions(knownWrapper("xargs")!, texts, true);
    this.ownOptions(rest, first, classes);
    if (fed.text !== null) this.findings.isFed(fed.text);
    const lists = this.producers.length > 0 && this.producers.every((one, at) => listsFiles(one, at === 0));
    this.call(this.filledIn(rest.slice(first), replaceMark(texts.slice(0, first))), NOTHING, depth);
    const open = this.listed ?? this.findings.anyHolds(".", true);
    if (open || !lists || worst(this.findings.classes.slice(before)) !== "read") this.unknown();
    return true;
  }

  /** A wrapper's options; where one is not known, every word may belong to them. */
  private ownOptions(rest: readonly Word[], first: number, classes: readonly ShellClass[]): void {
    this.findings.classes.push(...classes);
    for (const { text, glob } of classes.includes("unknown") ? rest : rest.slice(0, first))
      this.findings.touched(text, false, glob);
  }

  /** Without the words that files are put in for; one that is a part of a word makes names that were not looked at. */
  private filledIn(words: readonly Word[], mark: string): readonly Word[] {
    if (words.some(({ text }) => text !== mark && text.includes(mark))) this.unknown();
    return words.filter(({ text }) => text !== mark);
  }

  private found(rest: readonly Word[], depth: number): void {
    const open = this.findings.findsProtected(rest.map(({ text }) => text));
    this.listed = open || this.listed === true;
    rest.forEach(({ text }, at) => {
      if (!FIND_RUNS.test(text)) return;
      if (open) this.findings.classes.push("unknown");
      const tail = rest.slice(at + 1);
      const end = tail.findIndex((word) => word.text === ";" || word.text === "+");
      this.call(this.filledIn(end < 0 ? tail : tail.slice(0, end), "{}"), NOTHING, depth);
    });
  }

  private interpreter(name: string, words: readonly Word[], fed: Fed): true {
    const texts = words.map(({ text }) => text);
    this.findings.classes.push(...interpreted(name, texts));
    for (const text of fed.text === null ? texts : [...texts, fed.text]) this.findings.reads(text);
    const roles = texts.map((text): WordRole => (/[\s(]/.test(text) ? "code" : "plain"));
    this.findings.given(name, words, roles);
    if (fed.text !== null) this.findings.looked(fed.text, "code");
    const script = texts.findIndex((text) => /(?:^|\/)(?:svc\.js|cli\/bin\.js)$/.test(text));
    if (script >= 0 && isDecidingCommand("svc", texts.slice(script + 1)))
      this.findings.note("it is a deciding svc command");
    return true;
  }

  /** `npx` and its kin fetch and run a package; a known tool is what it is. */
  private runner(name: string, rest: readonly Word[], depth: number): boolean {
    const own = RUNNERS[name];
    if (own === undefined) return false;
    const from = own.length === 0 ? 0 : own.includes(rest[0]?.text ?? "") ? 1 : -1;
    if (from < 0) return false;
    const called = rest.findIndex(({ text }) => /^(?:-c|--call)$/.test(text));
    if (called >= 0) this.unread(rest.slice(called), depth);
    const before = this.findings.classes.length;
    const { words, installed } = runnerWords(rest.slice(from));
    if (words.length > 0) this.call(words, NOTHING, depth);
    if (!installed) this.findings.classes.push("packages");
    const found = worst(this.findings.classes.splice(before));
    this.findings.classes.push(found === "build" || found === "destructive" ? found : "packages");
    return true;
  }

  private loop(words: readonly Word[]): void {
    const open = words.some((word) => hasOpenText(word, "")) || isObeyed(words[0]?.text ?? "");
    this.findings.classes.push(open ? "unknown" : "read");
    for (const { text, glob } of words) this.findings.touched(text, false, glob);
  }

  private gitRuns(rest: readonly Word[], depth: number): void {
    const { scripts, programs } = runByGit(rest);
    for (const script of scripts) this.unread([script], depth);
    for (const words of programs) this.call(words, NOTHING, depth);
  }
}
