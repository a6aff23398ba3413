/**
 * Collects findings about a shell command: its classes, and the protected things that its words touch from the current
 * directories of the script.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isHookSettings, namesSecrets, type PathGuard } from "../path-guard.ts";
import { powershellViolations } from "../powershell.ts";
import { type CommandLocation, expandHome } from "../workspace/expand-home.ts";
import { isProjectClass, type ShellClass } from "./classes.ts";
import type { ShellWord } from "./command-parts.ts";
import { discardsForeignWork } from "./discards.ts";
import type { ProgramRow } from "./options.ts";
import {
  AFFECTS_TREES,
  GIT_REWRITES,
  GIT_UNINDEXED,
  OTHER_SVC,
  READS_TREES,
  RECURSIVE_OPTION,
  REWRITES_FILES,
  SEARCHES_ALL,
  SEARCHES_TREES,
  SOCKET_FILES,
} from "./programs.ts";
import { writtenPaths } from "./rules/decisive-files.ts";
import { opensEditor } from "./rules/editors.ts";
import { isUsualWorkTree, workTreeTarget } from "./rules/new-work-tree.ts";
import { isElsewhere, isOutside, targetsOf } from "./rules/outside.ts";
import { namesDecision } from "./svc-command.ts";
import { isBareRepository, rewrittenBy } from "./trees.ts";
import type { KnownVariables } from "./variables.ts";
import { filesInScript, pathPieces, rolesOf, type WordRole } from "./word-roles.ts";

export class CommandFindings {
  readonly classes: ShellClass[] = [];
  /** Reasons to refuse the command in any class. */
  readonly touches = new Set<string>();
  /** Variables with known values. */
  readonly known: KnownVariables;
  /** Possible directories of the script. The last one applies if every command succeeds. */
  folders: readonly string[];
  readonly place: CommandLocation;
  /** Paths that the command may write. */
  readonly written = new Set<string>();
  /** Paths that it names, with their directory, and whether everything below them is affected. */
  private readonly named: Parameters<PathGuard["runsUnasked"]>[] = [];
  private readonly workspace: string;
  private readonly home: string;
  private readonly guard: PathGuard;

  constructor(place: CommandLocation, guard: PathGuard) {
    const { cwd, home } = place;
    this.place = place;
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

  /** Notes the path if it is protected in any possible directory. */
  private judged(path: string, reach = false): void {
    for (const folder of this.folders) {
      this.note(this.guard.path(path, folder, reach));
      this.named.push([path, folder, reach]);
    }
  }

  /** Whether it names files that another program runs automatically. */
  namesUnasked(): boolean {
    return this.named.some((one) => this.guard.runsUnasked(...one));
  }

  anyHolds(path: string, files: boolean): boolean {
    return this.folders.some((folder) => this.guard.holds(path, folder, files));
  }

  note(why: string | null): void {
    if (why !== null) this.touches.add(why);
  }

  /** Checks a word, and each part of it that could be a path. */
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
      this.named.push([piece, folder]);
      if (maybe) this.classes.push("unknown");
    }
  }

  /** Checks the words of a program. */
  given(name: string, words: readonly ShellWord[], roles: readonly WordRole[]): void {
    const texts = words.map(({ text }) => text);
    const chosen = texts.some((text) => /^-i?(?:name|path|regex)$/.test(text));
    const reach =
      AFFECTS_TREES.test(name) || (name === "find" && this.classes.includes("destructive") && !chosen);
    const rewrites =
      REWRITES_FILES.test(name) ||
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
    if (SOCKET_FILES.test(texts.join(" "))) this.classes.push("network");
    // Only the program knows which files such an argument means.
    if (rewrites && files.some((text) => this.isWhole(text) || /^:|[*?[]/.test(text)))
      this.classes.push("unknown");
    if (this.readsProtected(name, texts, files)) this.classes.push("unknown");
  }

  /** Checks scripts and printed text, which name files in their own way. */
  looked(text: string, role: WordRole): void {
    for (const path of filesInScript(text, role)) this.judged(path);
  }

  /** Checks lines that another program reads as its arguments or its script. */
  isFed(text: string): void {
    this.decides(text);
    for (const piece of pathPieces(text)) if (/^[.~]|\//.test(piece)) this.judged(piece);
  }

  /** Checks a command for PowerShell or `cmd`. */
  spelledForWindows(text: string): true {
    this.classes.push("unknown");
    for (const cwd of this.folders)
      for (const why of powershellViolations(text, { cwd, home: this.home }, this.guard)) this.note(why);
    return true;
  }

  /** Checks code in another language. */
  reads(text: string): void {
    this.note(this.guard.text(text));
  }

  decides(text: string): void {
    if (namesDecision(text)) this.note("it names a deciding svc command");
  }

  /** Target directory of a `cd`. Null if it is unknown. */
  target(words: readonly ShellWord[]): string | null {
    const [to, ...more] = words.filter(({ text }) => !/^(?:-[LPe@]+|--)$/.test(text));
    if (to === undefined) return this.home;
    if (to.dynamic || to.glob || more.length > 0 || /^[-+]/.test(to.text) || to.text === "") return null;
    const path = expandHome(to.text, this.home, this.cwd);
    return path === null ? null : resolve(this.cwd, path);
  }

  /** Whether a build tool would run code outside the workspace, by its directory or by a path in its arguments. */
  runsElsewhere(texts: readonly string[]): boolean {
    // `-C/tmp` has its value in the same word.
    const named = texts
      .map((text) => text.replace(/^-[a-zA-Z](?=[/~]|\.\.(?:\/|$))/, ""))
      .filter((text) => /^[/~]|(?:^|[/=])\.\.(?:\/|$)|=[/~]/.test(text));
    const paths = named.map((text) => text.slice(text.indexOf("=") + 1));
    return ["", ...paths].some((path) =>
      this.folders.some((folder) => {
        const full = resolve(folder, expandHome(path, this.home, folder) ?? "/");
        return !`${full}/`.startsWith(`${this.workspace}/`);
      }),
    );
  }

  /** Git, started in the folders that the script may be in. */
  isGit(texts: readonly string[]): void {
    if (this.place.terminal && opensEditor(texts)) this.classes.push("unknown");
    const tree = workTreeTarget(texts);
    for (const folder of this.folders) {
      const target = tree === null ? folder : resolve(folder, expandHome(tree, this.home, folder) ?? "/");
      if (tree !== null && !isUsualWorkTree(target, this.workspace, this.guard.runsUnasked))
        this.classes.push("unknown");
      // Its configuration is in the directory, where any edit may have written it.
      if (isBareRepository(folder)) this.classes.push("unknown");
      if (isElsewhere(folder, this.place.began ?? this.place.cwd)) this.classes.push("unknown");
      if (discardsForeignWork(texts, folder, this.place.edits ?? new Map())) this.classes.push("unknown");
      for (const path of rewrittenBy(texts, folder) ?? [null]) this.rewritten(path);
    }
  }

  /** A file that git replaces by that of another commit; null if git does not name it. */
  private rewritten(path: string | null): void {
    if (path === null) return void this.classes.push("unknown");
    this.written.add(path);
    const folder = dirname(path);
    const why = this.guard.path(path, this.workspace);
    if (why !== null && isHookSettings(path)) this.note(why);
    else if (this.guard.runsUnasked(path, folder)) this.classes.push("unknown");
  }

  /** An interpreter that runs tests counts as a build in the workspace only. */
  ran(classes: readonly ShellClass[], texts: readonly string[]): void {
    const elsewhere = classes.some(isProjectClass) && this.runsElsewhere(texts);
    this.classes.push(...classes, ...(elsewhere ? (["unknown"] as const) : []));
  }

  /** Notes the words of a program that writes, or the target of a redirection. */
  writes(words: readonly string[]): void {
    const names = words.map((word) => expandHome(word, this.home, this.cwd) ?? word);
    for (const folder of this.folders) for (const path of writtenPaths(names, folder)) this.written.add(path);
  }

  /** A program of this class ran with these words. */
  wrote(kind: ShellClass, name: string, texts: readonly string[], piped: boolean): void {
    if (!/^(?:read|build)$/.test(kind)) this.writes(texts);
    if (kind === "write") this.writesAt(targetsOf(name, texts, rolesOf(name, texts, piped)));
  }

  /** Paths that are written: outside of the workspace nothing records what they were. */
  writesAt(paths: readonly string[]): void {
    const from = this.place.began ?? this.place.cwd;
    for (const path of paths)
      for (const folder of this.folders)
        if (isOutside(resolve(folder, expandHome(path, this.home, folder) ?? "/"), from))
          this.classes.push("unknown");
  }

  /** Whether this run changed the file, or another one that decides what it does. */
  isChanged(path: string): boolean {
    const { changed } = this.place;
    if (changed === undefined) return false;
    const decides = path.endsWith("gradlew") ? ["gradle/wrapper"] : path.endsWith("mvnw") ? [".mvn"] : [];
    return this.folders.some((folder) =>
      this.upToWorkspace(folder).some((at) => [path, ...decides].some((one) => changed(resolve(at, one)))),
    );
  }

  /** Whether an installation would not be what a lock file pins: this run changed the file, or there is none. */
  lacksLock(row: ProgramRow | undefined, texts: readonly string[]): boolean {
    if (row === undefined) return false;
    const named = texts.filter((_, at) => /^(?:-r|--requirement)$/.test(texts[at - 1] ?? ""));
    const lists = row.must.includes("--require-hashes") ? [...named, ...texts] : [];
    if ([...row.locks, ...lists].some((one) => this.isChanged(one))) return true;
    const [lock] = row.locks;
    return (
      row.locked &&
      !this.folders.some((folder) => this.upToWorkspace(folder).some((at) => existsSync(join(at, lock!))))
    );
  }

  /** The directory and its parents in the workspace, where programs look for the files of a project. */
  private upToWorkspace(folder: string): string[] {
    const found = [folder];
    for (let at = folder; at !== this.workspace && dirname(at) !== at; ) {
      at = dirname(at);
      if (`${at}/`.startsWith(`${this.workspace}/`)) found.push(at);
    }
    return found;
  }

  isFolder(path: string): boolean {
    try {
      return statSync(path).isDirectory();
    } catch {
      return false;
    }
  }

  /** Whether the files that `find` lists include protected ones. */
  findsProtected(texts: readonly string[]): boolean {
    const end = texts.findIndex((text) => /^[-(!]/.test(text));
    const folders = end < 0 ? texts : texts.slice(0, end);
    const names = texts.filter((_, at) => /^-i?name$/.test(texts[at - 1] ?? ""));
    const chosen = names.length > 0 && !texts.some((text) => /^(?:!|-not|-o|-or|,)$/.test(text));
    if (chosen && !names.some((name) => /^\*+$/.test(name) || namesSecrets(name))) return false;
    return (folders.length === 0 ? ["."] : folders).some((one) => this.anyHolds(one, true));
  }

  /** Whether the text means the current directory or a parent. */
  private isWhole(text: string): boolean {
    return `${this.cwd}/`.startsWith(`${resolve(this.cwd, text).replace(/\/$/, "")}/`);
  }

  /** Whether a search would show protected files, because it prints content from every file of a directory. */
  private readsProtected(name: string, texts: readonly string[], files: readonly string[]): boolean {
    if (name === "git" && texts.some((text) => GIT_UNINDEXED.test(text))) {
      const looked = [...files.slice(1), ...(files.length > 2 ? [] : ["."])];
      return looked.some((one) => this.anyHolds(one, true));
    }
    const searches = SEARCHES_TREES.test(name);
    if (!searches && !(READS_TREES.test(name) && texts.some((text) => RECURSIVE_OPTION.test(text))))
      return false;
    const hidden = !searches || texts.some((text) => SEARCHES_ALL.test(text));
    return (files.length === 0 ? ["."] : files).some((one) => this.anyHolds(one, hidden));
  }
}

/** The work tree of a directory, or the directory itself without one. */
function workspaceOf(cwd: string): string {
  for (let at = cwd; dirname(at) !== at; at = dirname(at)) if (existsSync(join(at, ".git"))) return at;
  return cwd;
}
