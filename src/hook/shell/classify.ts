/**
 * What a shell command does, as far as it can be read: its class, and what it touches that it may not. Wrappers
 * (`sh -c`, `env`, `xargs`, `npx`, ..) are looked through; what cannot be read counts as unknown.
 */
import { basename } from "node:path";
import type { Guard } from "../guard.ts";
import { Findings, type Place } from "./findings.ts";
import {
  ASSIGNMENT,
  afterOptions,
  byFirstWord,
  DEVICES,
  GIT_RUNS,
  GIT_RUNS_OPTION,
  INTERPRETERS,
  interpreted,
  isWritten,
  KEEPS_TEXT,
  PRINT_VARIABLES,
  PROGRAMS,
  RUNNERS,
  SHELLS,
  type ShellClass,
  SOCKETS,
  TURNING,
  turnedInto,
  WRAPPERS,
  worst,
} from "./programs.ts";
import { rolesOf, type WordRole } from "./roles.ts";
import { isDecidingCommand } from "./svc-command.ts";
import { type CommandPart, ENDS, KEYWORDS, parseScript, type Word } from "./words.ts";

export interface Judged {
  class: ShellClass;
  /** Why it is refused whatever the class; empty where nothing protected was found. */
  touches: string[];
}

export function judgeCommand(command: string, place: Place, guard: Guard): Judged {
  const findings = new Findings(place, guard);
  new Judge(findings, guard).script(command, 0);
  const { classes, touches } = findings;
  // What only running would tell is looked through as text.
  if (classes.includes("unknown")) findings.note(guard.text(command));
  return { class: worst(classes), touches: [...touches] };
}

/** What a program is fed with, and whether what it prints goes on to another. */
interface Fed {
  text: string | null;
  piped: boolean;
}
const NOTHING: Fed = { text: null, piped: false };

class Judge {
  private readonly findings: Findings;
  private readonly guard: Guard;
  /** Whether a `find` before has listed files among which are protected ones; null where there was none. */
  private listed: boolean | null = null;

  constructor(findings: Findings, guard: Guard) {
    this.findings = findings;
    this.guard = guard;
  }

  script(text: string, depth: number): void {
    const { parts, odd } = parseScript(text, this.findings.known, depth);
    if (odd.length > 0) this.findings.classes.push("unknown");
    if (parts.length === 0) this.findings.classes.push("read");
    for (const part of parts) this.part(part, depth);
  }

  private part({ words, redirects, fed, piped }: CommandPart, depth: number): void {
    let at = 0;
    while (at < words.length && KEYWORDS.test(words[at]!.text)) at++;
    const assigned = at;
    while (at < words.length && ASSIGNMENT.test(words[at]!.text)) at++;
    const variables = words.slice(assigned, at);
    if (variables.some(({ text }) => TURNING.test(text))) this.findings.classes.push("unknown");
    for (const { text, glob } of variables) {
      this.findings.decides(text);
      this.findings.touched(text.slice(text.indexOf("=") + 1), false, glob);
    }
    for (const { write, target } of redirects) this.redirected(write, target);
    this.call(words.slice(at), { text: fed, piped }, depth);
  }

  private redirected(write: boolean, target: Word): void {
    if (target.dynamic) this.findings.classes.push("unknown");
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
    const plain = !first.dynamic && (!first.glob || /^\[\[?$/.test(first.text));
    if (!plain) this.findings.classes.push("unknown");
    const texts = rest.map(({ text }) => text);
    if (isDecidingCommand(name, texts)) this.findings.note("it is a deciding svc command");
    if (first.text.includes("/")) this.findings.touched(first.text);
    if (this.through(name, rest, fed, depth)) return;
    this.findings.classes.push(this.classOf(first.text, name, texts));
    if (rest.some(({ dynamic }) => dynamic)) this.findings.classes.push("unknown");
    if (name === "git") this.gitRuns(rest, depth);
    this.findings.given(name, rest, rolesOf(name, texts, fed.piped));
    if (fed.text !== null && (fed.piped || !KEEPS_TEXT.test(name))) this.findings.isFed(fed.text);
    if (name === "cd") this.findings.moved(rest);
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
      this.findings.classes.push("unknown");
      this.findings.given(name, rest, rolesOf(name, texts, false));
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
    const { cwd } = this.findings;
    this.findings.touched(folder!.text, false, folder!.glob);
    this.findings.moved([folder!]);
    this.program({ text: "git", dynamic: false, glob: false }, rest, fed, depth);
    this.findings.moved([{ text: cwd, dynamic: false, glob: false }]);
    return true;
  }

  private unknown(): true {
    this.findings.classes.push("unknown");
    return true;
  }

  private again(text: string, depth: number, dynamic: boolean): true {
    if (dynamic) this.findings.classes.push("unknown");
    this.script(text, depth + 1);
    return true;
  }

  private shell(rest: readonly Word[], fed: Fed, depth: number): true {
    const at = rest.findIndex(({ text }) => /^-[a-zA-Z]*c$/.test(text));
    const script = at < 0 ? undefined : rest.slice(at + 1).find(({ text }) => !text.startsWith("-"));
    if (script !== undefined) return this.again(script.text, depth, script.dynamic);
    if (fed.text !== null) return this.again(fed.text, depth, false);
    for (const { text, glob } of rest) this.findings.touched(text, false, glob);
    return this.unknown();
  }

  private environment(rest: readonly Word[], fed: Fed, depth: number): true {
    if (rest.some(({ text }) => /^(?:-S|--split-string)/.test(text))) this.findings.classes.push("unknown");
    const after = rest.slice(rest.findIndex(({ text }) => !text.startsWith("-") && !ASSIGNMENT.test(text)));
    const runs = rest.some(({ text }) => !text.startsWith("-") && !ASSIGNMENT.test(text));
    if (rest.some(({ text }) => TURNING.test(text)) || !runs) this.findings.classes.push("unknown");
    for (const { text } of runs ? rest.slice(0, rest.length - after.length) : rest) {
      this.findings.touched(text);
      this.findings.decides(text);
    }
    if (runs) this.call(/^-u$/.test(rest[0]?.text ?? "") ? after.slice(1) : after, fed, depth);
    return true;
  }

  /** Its words come from elsewhere: what only reads may get any. */
  private manyTimes(rest: readonly Word[], fed: Fed, depth: number): true {
    const before = this.findings.classes.length;
    const options = /^-[anPIdLsE]$/;
    let at = 0;
    while (at < rest.length && rest[at]!.text.startsWith("-")) at += options.test(rest[at]!.text) ? 2 : 1;
    for (const { text } of rest.slice(0, at)) this.findings.touched(text);
    if (fed.text !== null) this.findings.isFed(fed.text);
    this.call(rest.slice(at).filter(isWritten), NOTHING, depth);
    const open = this.listed ?? this.guard.holds(".", this.findings.cwd, true);
    if (open || worst(this.findings.classes.slice(before)) !== "read") this.findings.classes.push("unknown");
    return true;
  }

  private found(rest: readonly Word[], depth: number): void {
    const open = this.findings.findsProtected(rest.map(({ text }) => text));
    this.listed = open || this.listed === true;
    rest.forEach(({ text }, at) => {
      if (!/^-(?:exec|execdir|ok|okdir)$/.test(text)) return;
      if (open) this.findings.classes.push("unknown");
      const tail = rest.slice(at + 1);
      const end = tail.findIndex((word) => word.text === ";" || word.text === "+");
      this.call((end < 0 ? tail : tail.slice(0, end)).filter(isWritten), NOTHING, depth);
    });
  }

  private interpreter(name: string, words: readonly Word[], fed: Fed): true {
    const texts = words.map(({ text }) => text);
    this.findings.classes.push(interpreted(name, texts));
    for (const text of fed.text === null ? texts : [...texts, fed.text])
      this.findings.note(this.guard.text(text));
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
    const words = RUNNERS[name];
    if (words === undefined) return false;
    const from = words.length === 0 ? 0 : words.includes(rest[0]?.text ?? "") ? 1 : -1;
    if (from < 0) return false;
    const called = rest.findIndex(({ text }) => /^(?:-c|--call)$/.test(text));
    if (called >= 0) this.again(rest[called + 1]?.text ?? "", depth, false);
    let at = from;
    while (at < rest.length && rest[at]!.text.startsWith("-"))
      at += /^(?:-p|--package|-c|--call)$/.test(rest[at]!.text) ? 2 : 1;
    const before = this.findings.classes.length;
    const program = rest[at];
    if (program !== undefined) {
      const unversioned = program.text.replace(/(?<=.)@[^/]*$/, "");
      this.call([{ ...program, text: unversioned }, ...rest.slice(at + 1)], NOTHING, depth);
    }
    const found = worst(this.findings.classes.splice(before));
    this.findings.classes.push(found === "build" || found === "destructive" ? found : "packages");
    return true;
  }

  private loop(words: readonly Word[]): void {
    this.findings.classes.push(words.some(({ dynamic }) => dynamic) ? "unknown" : "read");
    for (const { text, glob } of words) this.findings.touched(text, false, glob);
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
}
