/**
 * A copy of the repository to plant bugs in. The working tree is never touched: after a kill, only
 * a separate directory remains, and nothing in it is a repository.
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { findAnchors, inNamesOf } from "./anchor.ts";
import type { Bug } from "./bug.ts";

const LEFT_OUT: ReadonlySet<string> = new Set(["node_modules", ".git", "coverage", ".demo"]);
/** Installed packages are shared, not copied: the agent frameworks alone are 800 MB. */
const SHARED = ["node_modules", "test/adapters/frameworks/node_modules"];

export class Tree {
  readonly folder: string;

  constructor(root: string) {
    this.folder = mkdtempSync(join(tmpdir(), "svc-planted-"));
    const filter = (path: string) => !LEFT_OUT.has(basename(path));
    for (const name of readdirSync(root).filter(filter))
      cpSync(join(root, name), join(this.folder, name), { recursive: true, filter });
    for (const path of SHARED.filter((one) => existsSync(join(root, one))))
      symlinkSync(join(root, path), join(this.folder, path));
  }

  /** Does the work while the bug is in the sources. */
  async with<T>(bug: Bug, work: () => Promise<T>): Promise<T> {
    const path = join(this.folder, bug.file);
    const sound = readFileSync(path, "utf8");
    const put = (text: string) => {
      writeFileSync(path, text);
      if (bug.built) this.build();
    };
    try {
      put(planted(bug, sound));
      return await work();
    } finally {
      put(sound);
    }
  }

  private build(): void {
    const { status, stdout } = spawnSync(process.execPath, [join(this.folder, "scripts", "build.mjs")]);
    if (status !== 0) throw new Error(`the tree cannot be built: ${stdout}`);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** How many places of the source the bug fits; it can be planted where that is one. */
export function occurrences({ find }: Bug, source: string): number {
  return findAnchors(find, source).length;
}

export function planted(bug: Bug, source: string): string {
  const [anchor, ...others] = findAnchors(bug.find, source);
  if (anchor === undefined || others.length > 0)
    throw new Error(
      `${bug.name}: its text is ${anchor === undefined ? 0 : others.length + 1} times in ${bug.file}, not once`,
    );
  return source.slice(0, anchor.start) + inNamesOf(anchor, bug.replace) + source.slice(anchor.end);
}
