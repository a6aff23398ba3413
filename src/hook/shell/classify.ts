/**
 * What a shell command does, as far as it can be read: its class, and what it touches that it may not. Wrappers
 * (`sh -c`, `env`, `xargs`, `npx`, ..) are looked through; what cannot be read counts as unknown.
 */
import { basename, resolve } from "node:path";
import { type Guard, namesSecrets } from "../guard.ts";
import {
  byFirstWord,
  GIT_REWRITES,
  INTERPRETERS,
  PRINT_VARIABLES,
  PROGRAMS,
  RUNNERS,
  SEARCHES_ALL,
  SHELLS,
  type ShellClass,
  turnedInto,
  WRAPPER_VALUES,
  WRAPPERS,
  worst,
} from "./programs.ts";
import { isDecidingCommand } from "./svc-command.ts";
import { type Known, type Part, parseScript, type Word } from "./words.ts";

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

const KEYWORDS = /^(?:then|do|else|if|elif|while|until|!|\{|time)$/;
const ENDS = /^(?:fi|done|esac|\}|in)$/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;
/** Variables that make a program run something else. */
const TURNING =
  /^(?:PATH|LD_\w+|DYLD_\w+|NODE_OPTIONS|BASH_ENV|ENV|GIT_\w+|PYTHON\w*|PERL5\w*|RUBYOPT|IFS|PROMPT_COMMAND|SHELLOPTS|SVC_\w+|EDITOR|PAGER|VISUAL)=/;
const PATTERN_FIRST = /^(?:e?f?grep|rg|ag|ack|sed|g?awk|jq|yq)$/;
const DEVICES = /^\/dev\/(?:null|stdout|stderr|tty|fd\/\d+)$/;
const SOCKETS = /^\/dev\/(?:tcp|udp)\//;
const RECURSIVE =
  /^(?:-[a-zA-Z]*[rR][a-zA-Z]*|--recursive|--dereference-recursive|(?:--directories=)?recurse)$/;
const READS_TREES = /^(?:[ef]?grep|diff)$/;
/** They go through folders without being told to. */
const SEARCHES_TREES = /^(?:rg|ag|ack)$/;
/** Programs that take whole trees. */
const TREES = /^(?:rm|mv|cp|rsync|tar|zip|chmod|chown|chgrp|shred|ln)$/;
/** Programs that write into a folder that is named, or over the files in it. */
const REWRITES = /^(?:install|patch|unzip)$/;

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

  private part({ words, redirects, fed }: Part, depth: number): void {
    let at = 0;
    while (at < words.length && KEYWORDS.test(words[at]!.text)) at++;
    const assigned = at;
    while (at < words.length && ASSIGNMENT.test(words[at]!.text)) at++;
    const variables = words.slice(assigned, at);
    if (variables.some(({ text }) => TURNING.test(text))) this.classes.push("unknown");
    for (const { text, glob } of variables) this.touched(text.slice(text.indexOf("=") + 1), false, glob);
    for (const { write, target } of redirects) this.redirected(write, target);
    this.call(words.slice(at), fed, depth);
  }

  private redirected(write: boolean, target: Word): void {
    if (target.dynamic) this.classes.push("unknown");
    if (write && !DEVICES.test(target.text)) this.classes.push("write");
    if (SOCKETS.test(target.text)) this.classes.push("network");
    this.touched(target.text, false, target.glob);
  }

  /** One program with its words, whatever runs it. */
  private call(words: readonly Word[], fed: string | null, depth: number): void {
    const [first, ...rest] = words;
    if (first === undefined || ENDS.test(first.text)) this.classes.push("read");
    else if (first.text === "for" || first.text === "select") this.loop(rest);
    else this.program(first, rest, fed, depth);
  }

  private program(first: Word, rest: readonly Word[], fed: string | null, depth: number): void {
    const name = basename(first.text);
    const plain = !first.dynamic && (!first.glob || /^\[\[?$/.test(first.text));
    if (!plain) this.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    if (isDecidingCommand(name, texts)) this.note("it is a deciding svc command");
    if (this.through(name, rest, fed, depth)) return;
    this.classes.push(this.classOf(first.text, name, texts));
    if (rest.some(({ dynamic }) => dynamic)) this.classes.push("unknown");
    this.arguments(name, rest);
    if (name === "cd") this.moved(rest);
  }

  private classOf(path: string, name: string, texts: readonly string[]): ShellClass {
    // A path of one's own may hide anything behind a known name.
    const own =
      path.includes("/") &&
      !/^\/(?:usr\/(?:local\/)?)?s?bin\/|^\/opt\/homebrew\/bin\/|(?:^|\/)node_modules\/\.bin\//.test(path);
    const words = texts.filter((text) => !text.startsWith("-"));
    const known = own ? undefined : (byFirstWord(name, words[0]) ?? PROGRAMS.get(name));
    if (known === undefined)
      return texts.length === 1 && /^(?:--version|--help|-v|-h)$/.test(texts[0]!) && !own
        ? "read"
        : "unknown";
    return worst([known, ...turnedInto(name, texts)]);
  }

  /** Looks through a program that runs another; true where it did. */
  private through(name: string, rest: readonly Word[], fed: string | null, depth: number): boolean {
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
      this.arguments(name, rest);
      if (name === "sudo" || name === "doas") this.call(afterOptions(rest, 0), fed, depth);
      return true;
    }
    if (name === "env") return this.environment(rest, fed, depth);
    if (name === "xargs") return this.manyTimes(rest, depth);
    if (name === "find") this.found(rest, depth);
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

  private unknown(): true {
    this.classes.push("unknown");
    return true;
  }

  private again(text: string, depth: number, dynamic: boolean): true {
    if (dynamic) this.classes.push("unknown");
    this.script(text, depth + 1);
    return true;
  }

  private shell(rest: readonly Word[], fed: string | null, depth: number): true {
    const at = rest.findIndex(({ text }) => /^-[a-zA-Z]*c$/.test(text));
    const script = at < 0 ? undefined : rest.slice(at + 1).find(({ text }) => !text.startsWith("-"));
    if (script !== undefined) return this.again(script.text, depth, script.dynamic);
    if (fed !== null) return this.again(fed, depth, false);
    for (const { text, glob } of rest) this.touched(text, false, glob);
    return this.unknown();
  }

  private environment(rest: readonly Word[], fed: string | null, depth: number): true {
    if (rest.some(({ text }) => /^(?:-S|--split-string)/.test(text))) this.classes.push("unknown");
    const after = rest.slice(rest.findIndex(({ text }) => !text.startsWith("-") && !ASSIGNMENT.test(text)));
    const runs = rest.some(({ text }) => !text.startsWith("-") && !ASSIGNMENT.test(text));
    if (rest.some(({ text }) => TURNING.test(text)) || !runs) this.classes.push("unknown");
    if (runs) this.call(/^-u$/.test(rest[0]?.text ?? "") ? after.slice(1) : after, fed, depth);
    return true;
  }

  /** Its words come from elsewhere: what only reads may get any. */
  private manyTimes(rest: readonly Word[], depth: number): true {
    const before = this.classes.length;
    const options = /^-[nPIdLsE]$/;
    let at = 0;
    while (at < rest.length && rest[at]!.text.startsWith("-")) at += options.test(rest[at]!.text) ? 2 : 1;
    this.call(rest.slice(at).filter(isWritten), null, depth);
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
      this.call((end < 0 ? tail : tail.slice(0, end)).filter(isWritten), null, depth);
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

  private interpreter(name: string, words: readonly Word[], fed: string | null): true {
    const texts = words.map(({ text }) => text);
    const [first, second] = texts;
    if (/^(?:--version|-V|-v)$/.test(first ?? "")) this.classes.push("read");
    else if (
      name.startsWith("python") &&
      first === "-m" &&
      /^(?:pytest|unittest|mypy|ruff|black)$/.test(second ?? "")
    )
      this.classes.push("build");
    else if (/^node/.test(name) && first === "--test") this.classes.push("build");
    else this.classes.push("unknown");
    for (const text of texts) this.note(this.guard.text(text));
    if (fed !== null) this.note(this.guard.text(fed));
    this.arguments(name, words);
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
      this.call([{ ...program, text: unversioned }, ...rest.slice(at + 1)], null, depth);
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
    else this.cwd = resolve(this.cwd, to.text.replace(/^~(?=\/|$)/, this.place.home));
    this.known.set("PWD", this.cwd);
  }

  private arguments(name: string, words: readonly Word[]): void {
    const texts = words.map(({ text }) => text);
    const chosen = texts.some((text) => /^-i?(?:name|path|regex)$/.test(text));
    const reach = TREES.test(name) || (name === "find" && this.classes.includes("destructive") && !chosen);
    const rewrites =
      REWRITES.test(name) ||
      (name === "git" && GIT_REWRITES.test(texts.find((text) => !text.startsWith("-")) ?? ""));
    let pattern = PATTERN_FIRST.test(name) && !texts.some((text) => /^(?:-e|-f|--regexp|--file)/.test(text));
    const files: string[] = [];
    for (const { text, glob } of words) {
      if (pattern && !text.startsWith("-")) {
        pattern = false;
        continue;
      }
      if (!text.startsWith("-")) files.push(text);
      this.touched(text, reach || (rewrites && !this.isWhole(text)), glob);
    }
    if (SOCKETS.test(texts.join(" "))) this.classes.push("network");
    // Which files that means, the program finds out by itself.
    if (rewrites && files.some((text) => this.isWhole(text) || /^:|[*?[]/.test(text)))
      this.classes.push("unknown");
    if (this.readsProtected(name, texts, files)) this.classes.push("unknown");
  }

  /** The folder of the call, or one around it. */
  private isWhole(text: string): boolean {
    return `${this.cwd}/`.startsWith(`${resolve(this.cwd, text).replace(/\/$/, "")}/`);
  }

  /** A search through a folder shows what stands in each of its files. */
  private readsProtected(name: string, texts: readonly string[], files: readonly string[]): boolean {
    const searches = SEARCHES_TREES.test(name);
    if (!searches && !(READS_TREES.test(name) && texts.some((text) => RECURSIVE.test(text)))) return false;
    const hidden = !searches || texts.some((text) => SEARCHES_ALL.test(text));
    return (files.length === 0 ? ["."] : files).some((one) => this.guard.holds(one, this.cwd, hidden));
  }

  /** The word, and what stands in it after `=`, `@`, `:` or a short option. */
  private touched(text: string, reach = false, glob = false): void {
    if (text === "") return;
    const pieces = new Set([text, ...text.split(/[=@:,]/), text.replace(/^-[a-zA-Z]/, "")]);
    for (const piece of pieces) if (piece !== "") this.note(this.guard.path(piece, this.cwd, reach));
    if (glob)
      for (const piece of new Set([text, text.slice(text.search(/[=@:]/) + 1)])) {
        const { why, maybe } = this.guard.glob(piece, this.cwd);
        this.note(why);
        if (maybe) this.classes.push("unknown");
      }
    if (/^https?:\/\/|:\d{2,5}\b/.test(text)) this.note(this.guard.text(text));
  }
}

/** `{}` stands for what `find` and `xargs` put there. */
const isWritten = ({ text }: Word): boolean => text !== "{}";

function afterOptions(words: readonly Word[], skip: number): readonly Word[] {
  let at = 0;
  while (at < words.length && (words[at]!.text.startsWith("-") || ASSIGNMENT.test(words[at]!.text)))
    at += WRAPPER_VALUES.test(words[at]!.text) ? 2 : 1;
  return words.slice(at + skip);
}
