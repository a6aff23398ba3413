/**
 * The skills, commands, agents and MCP configurations that a person has seen: those in the workspace when the hook first
 * met it, and those whose use was allowed since. A run needs approval to use another one, or a changed one.
 */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeOwnFolder } from "../own-folder.ts";
import { isMcpFile, isUsedFile, MCP_FILES, USED_FOLDERS } from "./auto-run-files.ts";
import { hexHash } from "./hash.ts";
import { readBytesOrNull } from "./read-text.ts";

/** `used`: skills, commands and agents. `mcp`: configurations of tool servers. */
export type SeenKind = "used" | "mcp";

/** A file, and the SHA-256 of the content that is there. */
export interface UnseenFile {
  path: string;
  sha256: string;
}

interface SeenPlaces {
  /** Directory of the hook's settings. */
  folder: string;
  workspace: string;
  home: string;
}

/** Without the files in which clients also keep their own state. */
const PROJECT_MCP_FILES = MCP_FILES.filter((name) => name.endsWith("mcp.json"));

const MAX_FILES = 5_000;
const MAX_BYTES = 1_048_576;

export class SeenFiles {
  private readonly places: SeenPlaces;

  constructor(places: SeenPlaces) {
    this.places = places;
    // A workspace that is met for the first time is as its people made it.
    for (const root of this.roots())
      if (!existsSync(this.listPath(root))) this.write(root, filesNow(root, ["used", "mcp"]));
  }

  /** Files whose current content no person has seen. `changed`: files that the session changed, wherever they are. */
  unseen(kind: SeenKind, changed: readonly string[]): UnseenFile[] {
    const known = new Set(this.roots().flatMap((root) => [...this.read(root)]));
    const isKind = kind === "mcp" ? isMcpFile : isUsedFile;
    const all = [
      ...this.roots().flatMap((root) => filesNow(root, [kind])),
      ...changed.filter(isKind).flatMap((path) => fileNow(path)),
    ];
    const found = new Map(all.map((file) => [file.path, file]));
    return [...found.values()].filter((file) => !known.has(lineOf(file)));
  }

  /** A person allowed the use of these contents. */
  keep(files: readonly UnseenFile[]): void {
    if (files.length === 0) return;
    const { workspace } = this.places;
    const lines = new Set(files.map(lineOf));
    for (const line of this.read(workspace)) lines.add(line);
    this.writeLines(workspace, lines);
  }

  private roots(): string[] {
    return [...new Set([this.places.workspace, this.places.home])];
  }

  private listPath(root: string): string {
    return join(this.places.folder, "seen", hexHash(root).slice(0, 40));
  }

  private read(root: string): Set<string> {
    try {
      return new Set(readFileSync(this.listPath(root), "utf8").split("\n"));
    } catch {
      return new Set();
    }
  }

  private write(root: string, files: readonly UnseenFile[]): void {
    this.writeLines(root, new Set(files.map(lineOf)));
  }

  private writeLines(root: string, lines: ReadonlySet<string>): void {
    makeOwnFolder(join(this.places.folder, "seen"));
    const path = this.listPath(root);
    const fresh = `${path}.${process.pid}.new`;
    writeFileSync(fresh, [...lines].join("\n"), { mode: 0o600 });
    renameSync(fresh, path);
  }
}

const lineOf = ({ path, sha256 }: UnseenFile): string => `${sha256} ${JSON.stringify(path)}`;

function filesNow(root: string, kinds: readonly SeenKind[]): UnseenFile[] {
  const used = kinds.includes("used") ? USED_FOLDERS.flatMap((name) => below(join(root, name))) : [];
  const mcp = kinds.includes("mcp") ? PROJECT_MCP_FILES.map((name) => join(root, name)) : [];
  return [...used, ...mcp].flatMap((path) => fileNow(path));
}

/** Every file below, also behind links. A directory with more than the limit counts as one file that is never seen. */
function below(folder: string): string[] {
  const files: string[] = [];
  const visited = new Set<number>();
  const visit = (at: string): void => {
    const found = statSync(at, { throwIfNoEntry: false });
    if (found?.isDirectory() !== true) {
      if (found !== undefined || lstatSync(at, { throwIfNoEntry: false }) !== undefined) files.push(at);
      return;
    }
    if (visited.has(found.ino) || files.length > MAX_FILES) return;
    visited.add(found.ino);
    for (const name of readdirSync(at)) visit(join(at, name));
  };
  visit(folder);
  return files.length > MAX_FILES ? [folder] : files;
}

/** Empty without a file. A file that cannot be read is never seen. */
function fileNow(path: string): UnseenFile[] {
  try {
    const found = statSync(path);
    if (!found.isFile() || found.size > MAX_BYTES)
      return [{ path, sha256: `${found.ctimeMs} ${found.size}` }];
    const bytes = readBytesOrNull(path);
    return [{ path, sha256: bytes === null ? "unreadable" : hexHash(bytes) }];
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : [{ path, sha256: "unreadable" }];
  }
}
