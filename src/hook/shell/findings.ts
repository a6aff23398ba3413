/**
 * What was found of a shell command so far: what it does, and what its words touch that they may not, seen from the
 * folder that the script has gone to.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Guard, namesSecrets } from "../guard.ts";
import { type Place, withHome } from "../homes.ts";
import { powershellTouches } from "../powershell.ts";
import type { ShellClass } from "./classes.ts";
import type { Word } from "./parts.ts";
import {
  GIT_REWRITES,
  GIT_UNINDEXED,
  OTHER_SVC,
  READS_TREES,
  RECURSIVE,
  REWRITES,
  SEARCHES_ALL,
  SEARCHES_TREES,
  SOCKETS,
  TREES,
} from "./programs.ts";
import { filesIn, pathPieces, type WordRole } from "./roles.ts";
import { namesDecision } from "./svc-command.ts";
import type { Known } from "./variables.ts";

export class Findings {
  readonly classes: ShellClass[] = [];
  /** Why it is refused whatever the classes. */
  readonly touches = new Set<string>();
  /** The variables whose values are known. */
  readonly known: Known;
  /** The folders that the script may be in; the last one where everything went as written. */
  folders: readonly string[];
  /** It names files that something runs by itself. */
  names_unasked = false;
  private readonly workspace: string;
  private readonly home: string;
  private readonly guard: Guard;

  constructor({ cwd, home }: Place, guard: Guard) {
    this.folders = [cwd];
    this.workspace = workspaceOf(cwd);
    this.home = home;
    this.guard = guard;
    this.known = new Map([
      ["HOME", { text: home, several: false }],
      ["PWD", { text: cwd, several: false }],
    ]);
  }

  get cwd(): string {
    return this.folders.at(-1)!;
  }

  /** Whether the path is protected in any folder that the script may be in. */
  private judged(path: string, reach = false): void {
    for (const folder of this.folders) {
      this.note(this.guard.path(path, folder, reach));
      this.names_unasked ||= this.guard.runsUnasked(path, folder);
    }
  }

  anyHolds(path: string, files: boolean): boolean {
    return this.folders.some((folder) => this.guard.holds(path, folder, files));
  }

  note(why: string | null): void {
    if (why !== null) this.touches.add(why);
  }

  /** The word, and each part of it that could be a path. */
  touched(text: string, reach = false, glob = false): void {
    if (text === "") return;
    for (const piece of pathPieces(text)) this.judged(piece, reach);
    if (glob) for (const piece of new Set([text, text.slice(text.search(/[=@:]/) + 1)])) this.matched(piece);
    if (/^(?:https?|file):|:\d{2,5}\b/i.test(text)) this.note(this.guard.text(text));
  }

  private matched(piece: string): void {
    for (const folder of this.folders) {
      const { why, maybe } = this.guard.glob(piece, folder);
      this.note(why);
      if (maybe) this.classes.push("unknown");
    }
  }

  /** The words a program is given. */
  given(name: string, words: readonly Word[], roles: readonly WordRole[]): void {
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

  /** A script, or words that are only printed: they name files in their own way. */
  looked(text: string, role: WordRole): void {
    for (const path of filesIn(text, role)) this.judged(path);
  }

  /** Lines that another program takes for its words, or for its own script. */
  isFed(text: string): void {
    this.decides(text);
    for (const piece of pathPieces(text)) if (/^[.~]|\//.test(piece)) this.judged(piece);
  }

  /** A command for PowerShell or `cmd`. */
  spelledForWindows(text: string): true {
    this.classes.push("unknown");
    for (const cwd of this.folders)
      for (const why of powershellTouches(text, { cwd, home: this.home }, this.guard)) this.note(why);
    return true;
  }

  /** Code in another language. */
  reads(text: string): void {
    this.note(this.guard.text(text));
  }

  decides(text: string): void {
    if (namesDecision(text)) this.note("it names a deciding svc command");
  }

  /** The folder that `cd` leads to; null where that cannot be told. */
  target(words: readonly Word[]): string | null {
    const [to, ...more] = words.filter(({ text }) => !/^(?:-[LPe@]+|--)$/.test(text));
    if (to === undefined) return this.home;
    if (to.dynamic || to.glob || more.length > 0 || /^[-+]/.test(to.text) || to.text === "") return null;
    const path = withHome(to.text, this.home, this.cwd);
    return path === null ? null : resolve(this.cwd, path);
  }

  /** Whether a tool that runs the project's code would run another's: it is there, or is given a path that leads there. */
  runsElsewhere(texts: readonly string[]): boolean {
    const named = texts.filter((text) => /^[/~]|(?:^|[/=])\.\.(?:\/|$)|=[/~]/.test(text));
    const paths = named.map((text) => text.slice(text.indexOf("=") + 1));
    return ["", ...paths].some((path) =>
      this.folders.some((folder) => {
        const full = resolve(folder, withHome(path, this.home, folder) ?? "/");
        return !`${full}/`.startsWith(`${this.workspace}/`);
      }),
    );
  }

  isFolder(path: string): boolean {
    try {
      return statSync(path).isDirectory();
    } catch {
      return false;
    }
  }

  /** Whether what `find` lists has protected files among it. */
  findsProtected(texts: readonly string[]): boolean {
    const end = texts.findIndex((text) => /^[-(!]/.test(text));
    const folders = end < 0 ? texts : texts.slice(0, end);
    const names = texts.filter((_, at) => /^-i?name$/.test(texts[at - 1] ?? ""));
    const chosen = names.length > 0 && !texts.some((text) => /^(?:!|-not|-o|-or|,)$/.test(text));
    if (chosen && !names.some((name) => /^\*+$/.test(name) || namesSecrets(name))) return false;
    return (folders.length === 0 ? ["."] : folders).some((one) => this.anyHolds(one, true));
  }

  /** The folder of the call, or one around it. */
  private isWhole(text: string): boolean {
    return `${this.cwd}/`.startsWith(`${resolve(this.cwd, text).replace(/\/$/, "")}/`);
  }

  /** A search through a folder shows what stands in each of its files. */
  private readsProtected(name: string, texts: readonly string[], files: readonly string[]): boolean {
    if (name === "git" && texts.some((text) => GIT_UNINDEXED.test(text))) {
      const looked = [...files.slice(1), ...(files.length > 2 ? [] : ["."])];
      return looked.some((one) => this.anyHolds(one, true));
    }
    const searches = SEARCHES_TREES.test(name);
    if (!searches && !(READS_TREES.test(name) && texts.some((text) => RECURSIVE.test(text)))) return false;
    const hidden = !searches || texts.some((text) => SEARCHES_ALL.test(text));
    return (files.length === 0 ? ["."] : files).some((one) => this.anyHolds(one, hidden));
  }
}

/** The work tree around a folder, or the folder itself where there is none. */
function workspaceOf(cwd: string): string {
  for (let at = cwd; dirname(at) !== at; at = dirname(at)) if (existsSync(join(at, ".git"))) return at;
  return cwd;
}
