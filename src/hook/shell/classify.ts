/**
 * Classifies a shell command as far as it can be parsed, and finds the protected things that it touches. Wrappers such
 * as `env`, `xargs` and `npx` are resolved to the program that they run. Everything that cannot be parsed is unknown.
 */
import { basename } from "node:path";
import type { PathGuard } from "../path-guard.ts";
import { POWERSHELL_PROGRAM } from "../powershell.ts";
import type { CommandLocation } from "../workspace/expand-home.ts";
import { isProjectClass, type ShellClass, worstClass } from "./classes.ts";
import type { CommandPart, ShellWord } from "./command-parts.ts";
import { CommandFindings } from "./findings.ts";
import { readOptions } from "./options.ts";
import { BLOCK_END, parseScript, SHELL_KEYWORDS } from "./parse-script.ts";
import { listsFiles, type PipelineProgram } from "./pipelines.ts";
import { NO_INPUT, type ProgramInput, plainWord } from "./program-input.ts";
import {
  classesOf,
  classifyByOptions,
  DEVICE_FILES,
  INTERPRETER_PROGRAMS,
  interpreterClasses,
  isCodingAgent,
  isControlVariable,
  KEEPS_TEXT,
  OBEYS_KEYS,
  PACKAGE_RUNNERS,
  PRINT_VARIABLES,
  rowOf,
  SHELL_PROGRAMS,
  SOCKET_FILES,
  WRAPPER_WORDS,
} from "./programs.ts";
import { decisiveFiles } from "./rules/decisive-files.ts";
import { ScriptDirectories } from "./rules/directories.ts";
import { leadsElsewhere } from "./rules/given-variables.ts";
import { isDecidingCommand } from "./svc-command.ts";
import { knownProgram, knownWrapper } from "./tables/tables.ts";
import { credentialReason } from "./tables/tables-credentials.ts";
import { VARIABLE_ASSIGNMENT } from "./variables.ts";
import { rolesOf, type WordRole } from "./word-roles.ts";
import {
  FIND_RUNS,
  hasOpenText,
  hasOpenWords,
  isInstalled,
  isMarkUnsafe,
  isProjectProgram,
  isSedSafe,
  mayBeOption,
  OF_THE_SHELL,
  oldTarClasses,
  replaceMark,
  runByGit,
  runnerWords,
  withoutRunPrograms,
} from "./word-rules.ts";

export interface ClassifiedCommand {
  class: ShellClass;
  /** Reasons to refuse the command in any class. Empty if it touches nothing protected. */
  touches: string[];
  /** Whether a part still runs after the command ended. */
  background: boolean;
  /** Files that it may change, and that decide what later commands run. */
  writes: string[];
}

export function classifyCommand(
  command: string,
  place: CommandLocation,
  guard: PathGuard,
): ClassifiedCommand {
  const findings = new CommandFindings(place, guard);
  const judge = new Judge(findings);
  judge.script(command, 0);
  const { classes, touches } = findings;
  // A change of a file that runs automatically needs approval.
  if (worstClass(classes) !== "read" && findings.namesUnasked()) classes.push("unknown");
  // Text that cannot be parsed is searched for protected things.
  if (classes.includes("unknown")) findings.note(guard.text(command));
  const writes = decisiveFiles(findings.written);
  return { class: worstClass(classes), touches: [...touches], background: judge.background, writes };
}

class Judge {
  private readonly findings: CommandFindings;
  /** Whether an earlier `find` lists protected files. Null without one. */
  private listed: boolean | null = null;
  /** Earlier programs in the pipeline. */
  private producers: PipelineProgram[] = [];
  private readonly directories: ScriptDirectories;
  /** Whether a part runs in the background without a `wait`. */
  background = false;
  /** The current part. */
  private part_now: CommandPart | null = null;

  constructor(findings: CommandFindings) {
    this.findings = findings;
    this.directories = new ScriptDirectories(findings);
  }

  script(text: string, depth: number): void {
    const { parts, odd } = parseScript(text, this.findings.known, depth);
    if (odd.length > 0) this.findings.classes.push("unknown");
    if (parts.length === 0) this.findings.classes.push("read");
    const { part_now } = this;
    const end = this.directories.nest();
    for (const part of parts) this.part(part, depth);
    end();
    this.part_now = part_now;
  }

  private part(part: CommandPart, depth: number): void {
    const { words, redirects, fed, piped } = part;
    this.part_now = part;
    this.directories.enter(part);
    if (part.after === "&") this.background = true;
    if (words[0]?.text === "wait") this.background = false;
    if (!part.reads_pipe) this.producers = [];
    let at = 0;
    while (at < words.length && SHELL_KEYWORDS.test(words[at]!.text) && !words[at]!.expanded) at++;
    const assigned = at;
    while (at < words.length && VARIABLE_ASSIGNMENT.test(words[at]!.text)) at++;
    this.assigned(words.slice(assigned, at), words[at]?.text);
    for (const { write, target } of redirects) this.redirected(write, target);
    this.call(words.slice(at), { text: fed, piped }, depth);
  }

  private assigned(words: readonly ShellWord[], program?: string): void {
    if (program !== undefined && leadsElsewhere(words, basename(program))) this.unknown();
    for (const { text, glob } of words) {
      const end = text.indexOf("=");
      if (isControlVariable(end < 0 ? text : text.slice(0, end))) this.findings.classes.push("unknown");
      if (end < 0) continue;
      this.findings.decides(text);
      this.findings.touched(text.slice(end + 1), false, glob);
    }
  }

  private redirected(write: boolean, target: ShellWord): void {
    if (hasOpenText(target)) this.findings.classes.push("unknown");
    if (write && !DEVICE_FILES.test(target.text)) {
      this.findings.classes.push("write");
      this.findings.writes([target.text]);
      this.findings.writesAt([target.text]);
    }
    if (SOCKET_FILES.test(target.text)) this.findings.classes.push("network");
    this.findings.touched(target.text, false, target.glob);
  }

  private call(words: readonly ShellWord[], fed: ProgramInput, depth: number): void {
    const [first, ...rest] = words;
    if (first === undefined || BLOCK_END.test(first.text)) this.findings.classes.push("read");
    else if (first.text === "for" || first.text === "select") this.loop(rest);
    else this.program(first, rest, fed, depth);
  }

  private program(first: ShellWord, rest: readonly ShellWord[], fed: ProgramInput, depth: number): void {
    const name = basename(first.text);
    const plain = !first.expanded && (!first.glob || /^\[\[?$/.test(first.text));
    if (!plain || hasOpenWords(name, rest)) this.findings.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    this.findings.note(credentialReason(name, texts));
    if (OBEYS_KEYS.test(name) && this.findings.place.terminal && !fed.piped) this.unknown();
    if (isDecidingCommand(name, texts)) this.findings.note("it is a deciding svc command");
    if (first.text.includes("/")) this.findings.touched(first.text);
    const before = this.findings.classes.length;
    if (!this.through(name, rest, fed, depth)) {
      this.findings.classes.push(...this.classesOf(first.text, name, rest));
      if (name === "git") this.gitRuns(rest, depth);
      this.findings.given(name, rest, rolesOf(name, texts, fed.piped));
      if (fed.text !== null && (fed.piped || !KEEPS_TEXT.test(name))) this.findings.isFed(fed.text);
      if (/^(?:cd|pushd|popd)$/.test(name)) this.directories.moved(this.part_now, rest);
      if (/^(?:export|local|readonly|unset|read)$/.test(name))
        this.assigned(rest, name === "export" ? "" : undefined);
    }
    // A program with an explicit path may do anything, even under a known name.
    if (!isInstalled(first.text, worstClass(this.findings.classes.slice(before)))) this.unknown();
    if (first.text.includes("/") && this.findings.isChanged(first.text)) this.unknown();
    this.findings.wrote(worstClass(this.findings.classes.slice(before)), name, texts, fed.piped);
    this.producers.push({ name, texts: rest.map(({ text, dynamic }) => (dynamic ? "$" : text)) });
  }

  private classesOf(path: string, name: string, rest: readonly ShellWord[]): ShellClass[] {
    const texts = rest.map(({ text }) => text);
    if (texts.length === 1 && /^--(?:version|help)$/.test(texts[0]!) && isInstalled(path, "build")) {
      const unknown = knownProgram(name) === undefined && worstClass(classesOf(name, [])) === "unknown";
      return [unknown ? "unknown" : "read"];
    }
    const own = name === "find" ? withoutRunPrograms(texts) : texts;
    const classes = [...classesOf(name, own), ...classifyByOptions(name, texts)];
    if (name === "sed" && !texts.every((text, at) => isSedSafe(text, rolesOf(name, texts, false)[at]!)))
      classes.push("unknown");
    if (name === "tar" && /^[a-zA-Z]/.test(texts[0] ?? "")) classes.push(...oldTarClasses(texts[0]!));
    const elsewhere = classes.some(isProjectClass) && this.findings.runsElsewhere(texts);
    if (this.findings.lacksLock(rowOf(name, own), texts)) classes.push("packages");
    if (elsewhere || rest.some((word) => mayBeOption(word, this.findings.folders))) classes.push("unknown");
    return classes;
  }

  private through(name: string, rest: readonly ShellWord[], fed: ProgramInput, depth: number): boolean {
    const texts = rest.map(({ text }) => text);
    if (SHELL_PROGRAMS.test(name)) return this.shell(rest, fed, depth);
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
    if (POWERSHELL_PROGRAM.test(name)) return this.findings.spelledForWindows(texts.join(" "));
    if (INTERPRETER_PROGRAMS.test(name)) return this.interpreter(name, rest, fed);
    if (name === "printenv" || (PRINT_VARIABLES.test(name) && texts.every((text) => text === "-p")))
      return this.unknown();
    if (WRAPPER_WORDS[name] !== undefined && rest.length > 0) return this.wrapped(name, rest, fed, depth);
    return this.inProject(name, rest, fed, depth) || this.runner(name, rest, depth);
  }

  /** Handles `uv run` and similar programs, which start build tools of the project's own environment. */
  private inProject(name: string, rest: readonly ShellWord[], fed: ProgramInput, depth: number): boolean {
    const wrapper = `${name} ${rest[0]?.text}`;
    const row = knownWrapper(wrapper);
    if (row === undefined || rest.length === 1) return false;
    const words = rest.slice(1);
    const texts = words.map(({ text }) => text);
    const before = this.findings.classes.length;
    this.wrapped(wrapper, words, fed, depth);
    const program = texts[readOptions(row, texts, true).first] ?? "";
    const known = isProjectClass(worstClass(this.findings.classes.slice(before)));
    if (!known || program.includes("/") || this.findings.isChanged(`.venv/bin/${program}`)) this.unknown();
    if (this.findings.lacksLock(row, texts)) this.findings.classes.push("packages");
    return true;
  }

  /** Handles `git -C <folder> ..` as git in that directory. */
  private elsewhere([, folder, ...rest]: readonly ShellWord[], fed: ProgramInput, depth: number): true {
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

  /** Handles the program after a wrapper's options. */
  private wrapped(name: string, rest: readonly ShellWord[], fed: ProgramInput, depth: number): true {
    const texts = rest.map(({ text }) => text);
    const { first, classes } = readOptions(knownWrapper(name)!, texts, true);
    this.ownOptions(rest, first, classes);
    // `command -v` only shows the location of a program.
    if (name === "command" && texts.slice(0, first).some((text) => /^-[pvV]*[vV]/.test(text))) {
      this.findings.classes.push("read");
      return true;
    }
    const program = rest.slice(first + (WRAPPER_WORDS[name] ?? 0));
    if (program.length === 0) this.unknown();
    // Another process cannot change this shell, so such a name can only be an unrelated program.
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

  /** Handles words that may be a script or its arguments, which only execution would show. */
  private unread(rest: readonly ShellWord[], depth: number): true {
    this.findings.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    for (const { text, glob } of rest) this.findings.touched(text, false, glob);
    this.findings.decides(texts.join(" "));
    for (const text of texts) if (/\s/.test(text)) this.again(text, depth);
    this.again(texts.filter((text) => !text.startsWith("-")).join(" "), depth);
    return true;
  }

  private shell(rest: readonly ShellWord[], fed: ProgramInput, depth: number): true {
    if (fed.text !== null) this.again(fed.text, depth);
    return this.unread(rest, depth);
  }

  private environment(rest: readonly ShellWord[], fed: ProgramInput, depth: number): true {
    const texts = rest.map(({ text }) => text);
    const { first, classes } = readOptions(knownWrapper("env")!, texts, true);
    this.ownOptions(rest, first, classes);
    let at = first;
    while (at < rest.length && VARIABLE_ASSIGNMENT.test(texts[at]!)) at++;
    this.assigned(rest.slice(first, at), texts[at]);
    // Without a program, `env` prints every variable. With another directory, relative names mean other files.
    if (at === rest.length || texts.slice(0, first).some((text) => /^(?:-C|--chdir)/.test(text)))
      this.unknown();
    if (OF_THE_SHELL.test(texts[at] ?? "")) this.unknown();
    else if (at < rest.length) this.call(rest.slice(at), fed, depth);
    return true;
  }

  /** Handles `xargs`, whose words come from other programs. Only a reading program may get such file names. */
  private manyTimes(rest: readonly ShellWord[], fed: ProgramInput, depth: number): true {
    const [before, texts] = [this.findings.classes.length, rest.map(({ text }) => text)];
    const { first, classes } = readOptions(knownWrapper("xargs")!, texts, true);
    this.ownOptions(rest, first, classes);
    if (fed.text !== null) this.findings.isFed(fed.text);
    const lists = this.producers.length > 0 && this.producers.every((one, at) => listsFiles(one, at === 0));
    this.call(this.filledIn(rest.slice(first), replaceMark(texts.slice(0, first))), NO_INPUT, depth);
    const open = this.listed ?? this.findings.anyHolds(".", true);
    if (open || !lists || worstClass(this.findings.classes.slice(before)) !== "read") this.unknown();
    return true;
  }

  /** Handles a wrapper's options. If one is unknown, any word may belong to them. */
  private ownOptions(rest: readonly ShellWord[], first: number, classes: readonly ShellClass[]): void {
    this.findings.classes.push(...classes);
    for (const { text, glob } of classes.includes("unknown") ? rest : rest.slice(0, first))
      this.findings.touched(text, false, glob);
  }

  /** Removes the words that file names replace. */
  private filledIn(words: readonly ShellWord[], mark: string): readonly ShellWord[] {
    if (isMarkUnsafe(words, mark)) this.unknown();
    return words.filter(({ text }) => text !== mark);
  }

  private found(rest: readonly ShellWord[], depth: number): void {
    const open = this.findings.findsProtected(rest.map(({ text }) => text));
    this.listed = open || this.listed === true;
    rest.forEach(({ text }, at) => {
      if (!FIND_RUNS.test(text)) return;
      if (open) this.findings.classes.push("unknown");
      const tail = rest.slice(at + 1);
      const end = tail.findIndex((word) => word.text === ";" || word.text === "+");
      const before = this.findings.classes.length;
      this.call(this.filledIn(end < 0 ? tail : tail.slice(0, end), "{}"), NO_INPUT, depth);
      // The files may be of another project.
      if (this.findings.classes.slice(before).some(isProjectClass)) this.unknown();
    });
  }

  private interpreter(name: string, words: readonly ShellWord[], fed: ProgramInput): true {
    const texts = words.map(({ text }) => text);
    // Standard input can be code.
    this.findings.ran(fed.text === null ? interpreterClasses(name, texts) : ["unknown"], texts);
    for (const text of fed.text === null ? texts : [...texts, fed.text]) this.findings.reads(text);
    const roles = texts.map((text): WordRole => (/[\s(]/.test(text) ? "code" : "plain"));
    this.findings.given(name, words, roles);
    if (fed.text !== null) this.findings.looked(fed.text, "code");
    const script = texts.findIndex((text) => /(?:^|\/)(?:svc\.js|cli\/bin\.js)$/.test(text));
    if (script >= 0 && isDecidingCommand("svc", texts.slice(script + 1)))
      this.findings.note("it is a deciding svc command");
    return true;
  }

  /** Handles `npx` and similar programs, which fetch and run a package. A known build tool keeps its own class. */
  private runner(name: string, rest: readonly ShellWord[], depth: number): boolean {
    const own = PACKAGE_RUNNERS[name];
    if (own === undefined) return false;
    const from = own.length === 0 ? 0 : own.includes(rest[0]?.text ?? "") ? 1 : -1;
    if (from < 0) return false;
    const called = rest.findIndex(({ text }) => /^(?:-c|--call)$/.test(text));
    if (called >= 0) this.unread(rest.slice(called), depth);
    const before = this.findings.classes.length;
    const { words, installed } = runnerWords(rest.slice(from));
    if (this.findings.isChanged(`node_modules/.bin/${words[0]?.text}`)) this.unknown();
    if (words.length > 0) this.call(words, NO_INPUT, depth);
    if (!installed || rest[0]?.text === "dlx") this.findings.classes.push("packages");
    const agent = words.some(({ text }) => isCodingAgent(text));
    const found = agent ? "unknown" : worstClass(this.findings.classes.splice(before));
    const asked = words.length === 2 && found === "read" && isProjectProgram(words[0]!.text);
    const kept = agent || asked || isProjectClass(found) || found === "destructive";
    this.findings.classes.push(kept ? found : "packages");
    return true;
  }

  private loop(words: readonly ShellWord[]): void {
    const open = words.some((word) => hasOpenText(word)) || isControlVariable(words[0]?.text ?? "");
    this.findings.classes.push(open ? "unknown" : "read");
    for (const { text, glob } of words) this.findings.touched(text, false, glob);
  }

  private gitRuns(rest: readonly ShellWord[], depth: number): void {
    const { scripts, programs } = runByGit(rest);
    this.findings.isGit(rest.map(({ text }) => text));
    for (const script of scripts) this.unread([script], depth);
    for (const words of programs) this.call(words, NO_INPUT, depth);
  }
}
