/**
 * The state of one path of a workspace, as a record keeps it. Paths are relative to the workspace. A name that is not
 * UTF-8 is kept byte for byte: its path begins with `//` and has one character for each byte.
 */
import type { Stats } from "node:fs";

/** Permissions including the setuid, setgid and sticky bits. */
const MODE_BITS = 0o7777;
const RAW = "//";

export interface RecordedFile {
  kind: "file";
  /** Keyed hash of the content. Null if the content is not recorded; `stamp` then distinguishes two states. */
  hash: string | null;
  stamp?: string;
  size: number;
  mode: number;
  uid: number;
  gid: number;
  inode: string;
  links: number;
}

export type PathState =
  | RecordedFile
  /** `raw`: the target has one character for each byte. */
  | { kind: "link"; target: string; raw?: true }
  | { kind: "directory"; mode: number; uid: number; gid: number }
  /** A pipe, a socket or a device. */
  | { kind: "other"; mode: number };

/** Null: nothing has this path. */
export type MaybePathState = PathState | null;

export const modeOf = ({ mode }: Stats): number => mode & MODE_BITS;
export const inodeNameOf = ({ dev, ino }: Pick<Stats, "dev" | "ino">): string => `${dev}:${ino}`;
export const stampOf = ({ size, mtimeMs, ctimeMs, ino }: Stats): string =>
  `${size} ${mtimeMs} ${ctimeMs} ${ino}`;

/** Whether an undo has nothing to do between the two states. */
export function isSameState(a: MaybePathState, b: MaybePathState): boolean {
  if (a === null || b === null) return a === b;
  if (a.kind === "file" && b.kind === "file") {
    const content = a.hash === null || b.hash === null ? a.stamp === b.stamp : a.hash === b.hash;
    // Equal contents under another inode have lost the file's other names.
    const linked = (a.links < 2 && b.links < 2) || a.inode === b.inode || a.links < 2;
    return content && linked && a.mode === b.mode && a.uid === b.uid && a.gid === b.gid;
  }
  if (a.kind === "link" && b.kind === "link") return a.target === b.target;
  if (a.kind === "directory" && b.kind === "directory")
    return a.mode === b.mode && a.uid === b.uid && a.gid === b.gid;
  return a.kind === "other" && b.kind === "other" && a.mode === b.mode;
}

/** What other machines may know of a state: no content, no inode. */
export function shownState(state: MaybePathState): Record<string, unknown> | null {
  if (state === null) return null;
  if (state.kind === "link")
    return { kind: state.kind, target: shownPath(state.raw ? `${RAW}${state.target}` : state.target) };
  const mode = state.mode.toString(8).padStart(4, "0");
  if (state.kind !== "file") return { kind: state.kind, mode };
  const { hash, stamp, size } = state;
  return { kind: state.kind, size, mode, hash: hash ?? `not recorded: ${stamp}` };
}

export function childPath(parent: string, name: string, raw: boolean): string {
  if (!raw && !parent.startsWith(RAW)) return parent === "" ? name : `${parent}/${name}`;
  const bytes = raw ? name : Buffer.from(name).toString("latin1");
  const before = parent.startsWith(RAW) ? parent.slice(RAW.length) : Buffer.from(parent).toString("latin1");
  return `${RAW}${before === "" ? "" : `${before}/`}${bytes}`;
}

/** The path as the file system takes it. */
export function fullPath(root: string, path: string): string | Buffer {
  if (path === "") return root;
  if (!path.startsWith(RAW)) return `${root}/${path}`;
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path.slice(RAW.length), "latin1")]);
}

/** Directory names and the last name of a path, each as the file system takes it. */
export function pathParts(path: string): (string | Buffer)[] {
  if (!path.startsWith(RAW)) return path.split("/");
  return path
    .slice(RAW.length)
    .split("/")
    .map((name) => Buffer.from(name, "latin1"));
}

/** The path for display. Bytes that are not text are written as `\xNN`. */
export function shownPath(path: string): string {
  if (!path.startsWith(RAW)) return path.replaceAll("\ufffd", "?");
  return path.slice(RAW.length).replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}

export function parentPath(path: string): string {
  const from = path.startsWith(RAW) ? RAW.length : 0;
  const cut = path.lastIndexOf("/");
  return cut < from ? "" : path.slice(0, cut);
}
