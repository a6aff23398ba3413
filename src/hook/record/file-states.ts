/** Looks at one path without following a link: its metadata, its state, and the names in a directory. */
import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { inodeNameOf, modeOf, type PathState } from "./path-state.ts";

/** Undefined if nothing is there; null if the directory above cannot be entered. */
export function statOf(path: string | Buffer): Stats | undefined | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return null;
  }
}

export function directoryState(found: Stats): PathState {
  return { kind: "directory", mode: modeOf(found), uid: found.uid, gid: found.gid };
}

export function fileState(found: Stats, hash: string | null) {
  return {
    kind: "file" as const,
    hash,
    size: found.size,
    mode: modeOf(found),
    uid: found.uid,
    gid: found.gid,
    inode: inodeNameOf(found),
    links: found.nlink,
  };
}

export function linkState(full: string | Buffer): PathState | null {
  try {
    const target = readlinkSync(full);
    if (!target.includes("\ufffd")) return { kind: "link", target };
    return { kind: "link", target: readlinkSync(full, { encoding: "latin1" }), raw: true };
  } catch {
    return null;
  }
}

/** Null if the directory cannot be read. A name that is not UTF-8 is given byte for byte. */
export function namesIn(full: string | Buffer): { name: string; raw: boolean }[] | null {
  try {
    const names = readdirSync(full);
    if (!names.some((name) => name.includes("\ufffd"))) return names.map((name) => ({ name, raw: false }));
    return readdirSync(full, { encoding: "latin1" }).map((bytes) => {
      const text = Buffer.from(bytes, "latin1").toString("utf8");
      return text.includes("\ufffd") ? { name: bytes, raw: true } : { name: text, raw: false };
    });
  } catch {
    return null;
  }
}
