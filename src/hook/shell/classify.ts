/**
 * What a shell command does, as far as it can be read: its class, and what it touches that it may not. Wrappers
 * (`sh -c`, `env`, `xargs`, `npx`, ..) are looked through; what cannot be read counts as unknown.
 */
import { basename, resolve } from "node:path";
import { type Guard, namesSecrets } from "../guard.ts";
import { withHome } from "../homes.ts";
import {
  ASSIGNMENT,
  afterOptions,
  byFirstWord,
  DEVICES,
  GIT_REWRITES,
  GIT_RUNS,
  GIT_RUNS_OPTION,
  GIT_UNINDEXED,
  INTERPRETERS,
  interpreted,
  isWritten,
  KEEPS_TEXT,
  OTHER_SVC,
  PRINT_VARIABLES,
  PROGRAMS,
  READS_TREES,
  RECURSIVE,
  REWRITES,
  RUNNERS,
  SEARCHES_ALL,
  SEARCHES_TREES,
  SHELLS,
  type ShellClass,
  SOCKETS,
  TREES,
  TURNING,
  turnedInto,
  WRAPPERS,
  worst,
} from "./programs.ts";
import { filesIn, pathPieces, rolesOf, type WordRole } from "./roles.ts";
import { isDecidingCommand, namesDecision } from "./svc-command.ts";
import { type CommandPart, ENDS, KEYWORDS, type Known, parseScript, type Word } from "./words.ts";

export interface Judged {
  class: ShellClass;
  /** Why it is refused whatever the class; empty where nothing protected was found. */
  touches: string[];
}

export interface Place {
  cwd: string;
  home: string;
}

export function judgeCommand(command: string, place: Place, guard: Guard): Judged {
  const judge = new Judge(place, guard);
  judge.script(command, 0);
  const { classes, touches } = judge;
  // What only running would tell is looked through as text.
  if (classes.includes("unknown")) judge.note(guard.text(command));
  return { class: worst(classes), touches: [...touches] };
}

/** What a program is fed with, and whether what it prints goes on to another. */
interface Fed {
  text: string | null;
  piped: boolean;
}
const NOTHING: Fed = { text: null, piped: false };

class Judge {
  readonly classes: ShellClass[] = [];
  readonly touches = new Set<string>();
  private readonly known: Known;
  private cwd: string;
  /** Whether a `find` before has listed files among which are protected ones; null where there was none. */
  private listed: boolean | null = null;

  private readonly place: Place;
  private readonly guard: Guard;

  constructor(place: Place, guard: Guard) {
    this.place = place;
    this.guard = guard;
    this.cwd = place.cwd;
    this.known = new Map([
      ["HOME", place.home],
      ["PWD", place.cwd],
    ]);
  }

  note(why: string | null): void {
    if (why !== null) this.touches.add(why);
  }

  script(text: string, depth: number): void {
    const { parts, odd } = parseScript(text, this.known, depth);
    if (odd.length > 0) this.classes.push("unknown");
    if (parts.length === 0) this.classes.push("read");
    for (const part of parts) this.part(part, depth);
  }

  private part({ words, redirects, fed, piped }: CommandPart, depth: number): void {
    let at = 0;
    while (at < words.length && KEYWORDS.test(words[at]!.text)) at++;
    const assigned = at;
    while (at < words.length && ASSIGNMENT.test(words[at]!.text)) at++;
    const variables = words.slice(assigned, at);
    if (variables.some(({ text }) => TURNING.test(text))) this.classes.push("unknown");
    for (const { text, glob } of variables) {
      this.decides(text);
      this.touched(text.slice(text.indexOf("=") + 1), false, glob);
    }
    for (const { write, target } of redirects) this.redirected(write, target);
    this.call(words.slice(at), { text: fed, piped }, depth);
  }

  private redirected(write: boolean, target: Word): void {
    if (target.dynamic) this.classes.push("unknown");
    if (write && !DEVICES.test(target.text)) this.classes.push("write");
    if (SOCKETS.test(target.text)) this.classes.push("network");
    this.touched(target.text, false, target.glob);
  }

  /** One program with its words, whatever runs it. */
  private call(words: readonly Word[], fed: Fed, depth: number): void {
    const [first, ...rest] = words;
    if (first === undefined || ENDS.test(first.text)) this.classes.push("read");
    else if (first.text === "for" || first.text === "select") this.loop(rest);
    else this.program(first, rest, fed, depth);
  }

  private program(first: Word, rest: readonly Word[], fed: Fed, depth: number): void {
    const name = basename(first.text);
    const plain = !first.dynamic && (!first.glob || /^\[\[?$/.test(first.text));
    if (!plain) this.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    if (isDecidingCommand(name, texts)) this.note("it is a deciding svc command");
    if (first.text.includes("/")) this.touched(first.text);
    if (this.through(name, rest, fed, depth)) return;
    this.classes.push(this.classOf(first.text, name, texts));
    if (rest.some(({ dynamic }) => dynamic)) this.classes.push("unknown");
    if (name === "git") this.gitRuns(rest, depth);
    this.arguments(name, rest, rolesOf(name, texts, fed.piped));
    if (fed.text !== null && (fed.piped || !KEEPS_TEXT.test(name))) this.isFed(fed.text);
    if (name === "cd") this.moved(rest);
  }

  private classOf(path: string, name: string, texts: readonly string[]): ShellClass {
    // A path of one's own may hide anything behind a known name.
    const own =
      path.includes("/") &&
      !/^\/(?:usr\/(?:local\/)?)?s?bin\/|^\/opt\/homebrew\/bin\/|(?:^|\/)node_modules\/\.bin\//.test(path);
    const known = own ? undefined : (byFirstWord(name, texts) ?? PROGRAMS.get(name));
    if (known === undefined)
      return texts.length === 1 && /^(?:--version|--help|-v|-h)$/.test(texts[0]!) && !own
        ? "read"
        : "unknown";
    return worst([known, ...turnedInto(name, texts)]);
  }

  /** Looks through a program that runs another; true where it did. */
  private through(name: string, rest: readonly Word[], fed: Fed, depth: number): boolean {
    const texts = rest.map(({ text }) => text);
    if (SHELLS.test(name)) return this.shell(rest, fed, depth);
    if (name === "eval")
      return this.again(
        texts.join(" "),
        depth,
        rest.some(({ dynamic }) => dynamic),
      );
    if (name === "source" || name === "." || name === "sudo" || name === "doas" || name === "su") {
      this.classes.push("unknown");
      this.arguments(name, rest, rolesOf(name, texts, false));
      if (name === "sudo" || name === "doas") this.call(afterOptions(rest, 0), fed, depth);
      return true;
    }
    if (name === "env") return this.environment(rest, fed, depth);
    if (name === "xargs") return this.manyTimes(rest, fed, depth);
    if (name === "find") this.found(rest, depth);
    if (name === "git" && texts[0] === "-C" && rest.length > 2) return this.elsewhere(rest, fed, depth);
    if (INTERPRETERS.test(name)) return this.interpreter(name, rest, fed);
    if (name === "printenv" || (PRINT_VARIABLES.test(name) && texts.every((text) => text === "-p")))
      return this.unknown();
    const skip = WRAPPERS[name];
    if (skip !== undefined && rest.length > 0 && !(name === "command" && /^-[vV]$/.test(texts[0]!))) {
      this.call(afterOptions(rest, skip), fed, depth);
      return true;
    }
    return this.runner(name, rest, depth);
  }

  /** `git -C <folder> ..` is git in that folder. */
  private elsewhere([, folder, ...rest]: readonly Word[], fed: Fed, depth: number): true {
    const { cwd } = this;
    this.touched(folder!.text, false, folder!.glob);
    this.moved([folder!]);
    this.program({ text: "git", dynamic: false, glob: false }, rest, fed, depth);
    this.moved([{ text: cwd, dynamic: false, glob: false }]);
    return true;
  }

  private unknown(): true {
    this.classes.push("unknown");
    return true;
  }

  private again(text: string, depth: number, dynamic: boolean): true {
    if (dynamic) this.classes.push("unknown");
    this.script(text, depth + 1);
    return true;
  }

  private shell(rest: readonly Word[], fed: Fed, depth: number): true {
    const at = rest.findIndex(({ text }) => /^-[a-zA-Z]*c$/.test(text));
    const script = at < 0 ? undefined : rest.slice(at + 1).find(({ text }) => !text.startsWith("-"));
    if (script !== undefined) return this.again(script.text, depth, script.dynamic);
    if (fed.text !== null) return this.again(fed.text, depth, false);
    for (const { text, glob } of rest) this.touched(text, false, glob);
    return this.unknown();
  }

  private environment(rest: readonly Word[], fed: Fed, depth: number): true {
    if (rest.some(({ text }) => /^(?:-S|--split-string)/.test(text))) this.classes.push("unknown");
    const after = rest.slice(rest.findIndex(({ text }) => !text.startsWith("-") && !ASSIGNMENT.test(text)));
    const runs = rest.some(({ text }) => !text.startsWith("-") && !ASSIGNMENT.test(text));
    if (rest.some(({ text }) => TURNING.test(text)) || !runs) this.classes.push("unknown");
    for (const { text } of runs ? rest.slice(0, rest.length - after.length) : rest) {
      this.touched(text);
      this.decides(text);
    }
    if (runs) this.call(/^-u$/.test(rest[0]?.text ?? "") ? after.slice(1) : after, fed, depth);
    return true;
  }

  /** Its words come from elsewhere: what only reads may get any. */
  private manyTimes(rest: readonly Word[], fed: Fed, depth: number): true {
    const before = this.classes.length;
    const options = /^-[anPIdLsE]$/;
    let at = 0;
    while (at < rest.length && rest[at]!.text.startsWith("-")) at += options.test(rest[at]!.text) ? 2 : 1;
    for (const { text } of rest.slice(0, at)) this.touched(text);
    if (fed.text !== null) this.isFed(fed.text);
    this.call(rest.slice(at).filter(isWritten), NOTHING, depth);
    const open = this.listed ?? this.guard.holds(".", this.cwd, true);
    if (open || worst(this.classes.slice(before)) !== "read") this.classes.push("unknown");
    return true;
  }

  private found(rest: readonly Word[], depth: number): void {
    const open = this.findsProtected(rest.map(({ text }) => text));
    this.listed = open || this.listed === true;
    rest.forEach(({ text }, at) => {
      if (!/^-(?:exec|execdir|ok|okdir)$/.test(text)) return;
      if (open) this.classes.push("unknown");
      const tail = rest.slice(at + 1);
      const end = tail.findIndex((word) => word.text === ";" || word.text === "+");
      this.call((end < 0 ? tail : tail.slice(0, end)).filter(isWritten), NOTHING, depth);
    });
  }

  private findsProtected(texts: readonly string[]): boolean {
    const end = texts.findIndex((text) => /^[-(!]/.test(text));
    const folders = end < 0 ? texts : texts.slice(0, end);
    const names = texts.filter((_, at) => /^-i?name$/.test(texts[at - 1] ?? ""));
    const chosen = names.length > 0 && !texts.some((text) => /^(?:!|-not|-o|-or|,)$/.test(text));
    if (chosen && !names.some((name) => /^\*+$/.test(name) || namesSecrets(name))) return false;
    return (folders.length === 0 ? ["."] : folders).some((one) => this.guard.holds(one, this.cwd, true));
  }

  private interpreter(name: string, words: readonly Word[], fed: Fed): true {
    const texts = words.map(({ text }) => text);
    this.classes.push(interpreted(name, texts));
    for (const text of fed.text === null ? texts : [...texts, fed.text]) this.note(this.guard.text(text));
    const roles = texts.map((text): WordRole => (/[\s(]/.test(text) ? "code" : "plain"));
    this.arguments(name, words, roles);
    if (fed.text !== null) this.looked(fed.text, "code");
    const script = texts.findIndex((text) => /(?:^|\/)(?:svc\.js|cli\/bin\.js)$/.test(text));
    if (script >= 0 && isDecidingCommand("svc", texts.slice(script + 1)))
      this.note("it is a deciding svc command");
    return true;
  }

  /** `npx` and its kin fetch and run a package; a known tool is what it is. */
  private runner(name: string, rest: readonly Word[], depth: number): boolean {
    const words = RUNNERS[name];
    if (words === undefined) return false;
    const from = words.length === 0 ? 0 : words.includes(rest[0]?.text ?? "") ? 1 : -1;
    if (from < 0) return false;
    const called = rest.findIndex(({ text }) => /^(?:-c|--call)$/.test(text));
    if (called >= 0) this.again(rest[called + 1]?.text ?? "", depth, false);
    let at = from;
    while (at < rest.length && rest[at]!.text.startsWith("-"))
      at += /^(?:-p|--package|-c|--call)$/.test(rest[at]!.text) ? 2 : 1;
    const before = this.classes.length;
    const program = rest[at];
    if (program !== undefined) {
      const unversioned = program.text.replace(/(?<=.)@[^/]*$/, "");
      this.call([{ ...program, text: unversioned }, ...rest.slice(at + 1)], NOTHING, depth);
    }
    const found = worst(this.classes.splice(before));
    this.classes.push(found === "build" || found === "destructive" ? found : "packages");
    return true;
  }

  private loop(words: readonly Word[]): void {
    this.classes.push(words.some(({ dynamic }) => dynamic) ? "unknown" : "read");
    for (const { text, glob } of words) this.touched(text, false, glob);
  }

  private moved([to]: readonly Word[]): void {
    if (to === undefined) this.cwd = this.place.home;
    else if (to.dynamic || to.glob || to.text === "-") this.classes.push("unknown");
    else this.cwd = resolve(this.cwd, withHome(to.text, this.place.home, this.cwd) ?? "/");
    this.known.set("PWD", this.cwd);
  }

  /** Git runs a command for each commit, submodule or match. */
  private gitRuns(rest: readonly Word[], depth: number): void {
    rest.forEach(({ text, dynamic }, at) => {
      const [option, sticky] = GIT_RUNS_OPTION.exec(text) ?? [];
      const given = sticky === "" ? rest[at + 1] : { text: sticky ?? "", dynamic };
      if (option !== undefined && rest.some((word) => word.text === "rebase"))
        this.again(given?.text ?? "", depth, given?.dynamic ?? false);
      if (at > 0 && GIT_RUNS.test(text) && /^(?:bisect|submodule)$/.test(rest[at - 1]!.text))
        this.call(rest.slice(at + 1), NOTHING, depth);
    });
  }

  private arguments(name: string, words: readonly Word[], roles: readonly WordRole[]): void {
    const texts = words.map(({ text }) => text);
    const chosen = texts.some((text) => /^-i?(?:name|path|regex)$/.test(text));
    const reach = TREES.test(name) || (name === "find" && this.classes.includes("destructive") && !chosen);
    const rewrites =
      REWRITES.test(name) ||
      (name === "git" && GIT_REWRITES.test(texts.find((text) => !text.startsWith("-")) ?? ""));
    const files: string[] = [];
    const said: string[] = [];
    words.forEach(({ text, glob }, at) => {
      const role = roles[at]!;
      if (role === "text") return;
      if (!OTHER_SVC.test(name) || /\s/.test(text)) said.push(text);
      this.looked(text, role);
      if (role !== "plain") return;
      if (!text.startsWith("-")) files.push(text);
      this.touched(text, reach || (rewrites && !this.isWhole(text)), glob);
    });
    this.decides(said.join(" "));
    if (SOCKETS.test(texts.join(" "))) this.classes.push("network");
    // Which files that means, the program finds out by itself.
    if (rewrites && files.some((text) => this.isWhole(text) || /^:|[*?[]/.test(text)))
      this.classes.push("unknown");
    if (this.readsProtected(name, texts, files)) this.classes.push("unknown");
  }

  private decides(text: string): void {
    if (namesDecision(text)) this.note("it names a deciding svc command");
  }

  /** A script, or words that are only printed: they name files in their own way. */
  private looked(text: string, role: WordRole): void {
    for (const path of filesIn(text, role)) this.note(this.guard.path(path, this.cwd));
  }

  /** Lines that another program takes for its words, or for its own script. */
  private isFed(text: string): void {
    this.decides(text);
    for (const piece of pathPieces(text))
      if (/^[.~]|\//.test(piece)) this.note(this.guard.path(piece, this.cwd));
  }

  /** The folder of the call, or one around it. */
  private isWhole(text: string): boolean {
    return `${this.cwd}/`.startsWith(`${resolve(this.cwd, text).replace(/\/$/, "")}/`);
  }

  /** A search through a folder shows what stands in each of its files. */
  private readsProtected(name: string, texts: readonly string[], files: readonly string[]): boolean {
    if (name === "git" && texts.some((text) => GIT_UNINDEXED.test(text))) {
      const looked = [...files.slice(1), ...(files.length > 2 ? [] : ["."])];
      return looked.some((one) => this.guard.holds(one, this.cwd, true));
    }
    const searches = SEARCHES_TREES.test(name);
    if (!searches && !(READS_TREES.test(name) && texts.some((text) => RECURSIVE.test(text)))) return false;
    const hidden = !searches || texts.some((text) => SEARCHES_ALL.test(text));
    return (files.length === 0 ? ["."] : files).some((one) => this.guard.holds(one, this.cwd, hidden));
  }

  /** The word, and each part of it that could be a path. */
  private touched(text: string, reach = false, glob = false): void {
    if (text === "") return;
    for (const piece of pathPieces(text)) this.note(this.guard.path(piece, this.cwd, reach));
    if (glob)
      for (const piece of new Set([text, text.slice(text.search(/[=@:]/) + 1)])) {
        const { why, maybe } = this.guard.glob(piece, this.cwd);
        this.note(why);
        if (maybe) this.classes.push("unknown");
      }
    if (/^(?:https?|file):|:\d{2,5}\b/i.test(text)) this.note(this.guard.text(text));
  }
}
