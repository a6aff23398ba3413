/** State of a call between its two events, which run in separate processes. Each call has one file. */
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeOwnFolder } from "./own-folder.ts";
import type { EditWindow } from "./record/edit-record.ts";
import { hexHash } from "./workspace/hash.ts";
import { joinEdits, type OwnEdit, type OwnEdits } from "./workspace/own-edits.ts";

export interface CallState {
  run: string;
  step: number;
  tool: string;
  agent: string | null;
  /** Directory and start time of a command, for finding the files that it changed. Null for other calls. */
  command: { cwd: string; began_ms: number } | null;
  /** Files of an edit. */
  files: string[];
  /** The record of an edit under way. Null for other calls, and without a record. */
  edit: EditWindow | null;
  /** The client's id of a background command, or "" without an id. Absent for a call that ends with its event. */
  background?: string;
  /** The window on the workspace that this call opened. */
  window?: string;
  /** The next event reports the start and not the end. */
  started_only?: boolean;
}

export interface KeptNote {
  note: CallState;
  /** Time of saving by the file system's clock, which is slightly behind the process's clock. */
  kept_ms: number;
  forget(): void;
  /** Marks the call as a background command. */
  keepRunning(id: string): void;
}

const MAX_TWINS = 99;
const GONE = "gone";
const CHANGED = "changed";
const EDITS = "edits";

export class CallStateStore {
  private readonly folder: string;

  constructor(root: string, session: string) {
    this.folder = join(root, stateFileName(session));
  }

  keep(call: string, note: CallState): void {
    makeOwnFolder(this.folder);
    // A client without call ids may make two identical calls at the same time.
    for (let twin = 0; ; twin++) {
      try {
        writeFileSync(this.path(call, twin), JSON.stringify(note), { mode: 0o600, flag: "wx" });
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST" || twin >= MAX_TWINS) throw error;
      }
    }
  }

  find(call: string): KeptNote | null {
    for (let twin = 0; twin <= MAX_TWINS; twin++) {
      const found = this.read(this.path(call, twin));
      if (found !== null && found.note.background === undefined) return found;
    }
    return null;
  }

  /** Files that were already missing at the last check of the work tree. */
  gone(): Set<string> {
    try {
      return new Set(JSON.parse(readFileSync(join(this.folder, GONE), "utf8")) as string[]);
    } catch {
      return new Set();
    }
  }

  /** Files that decide what later commands run, and that this session changed. */
  changed(): string[] {
    const path = join(this.folder, CHANGED);
    // A list that cannot be read must not count as empty.
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as string);
  }

  keepChanged(paths: readonly string[]): void {
    const known = new Set(this.changed());
    const lines = paths.filter((path) => !known.has(path)).map((path) => `${JSON.stringify(path)}\n`);
    if (lines.length === 0) return;
    makeOwnFolder(this.folder);
    // Calls at the same time add to one file, so nothing is rewritten.
    appendFileSync(join(this.folder, CHANGED), lines.join(""), { mode: 0o600 });
  }

  /** Files that this session edited. */
  edits(): OwnEdits {
    const path = join(this.folder, EDITS);
    if (!existsSync(path)) return new Map();
    const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
    return joinEdits(lines.map((line) => JSON.parse(line) as OwnEdit));
  }

  /** Adds the edits of a call that took place. */
  keepEdits(edits: readonly OwnEdit[]): void {
    if (edits.length === 0) return;
    makeOwnFolder(this.folder);
    // Calls at the same time add to one file, so nothing is rewritten.
    const lines = edits.map((edit) => `${JSON.stringify(edit)}\n`);
    appendFileSync(join(this.folder, EDITS), lines.join(""), { mode: 0o600 });
  }

  keepGone(paths: readonly string[]): void {
    writeFileSync(join(this.folder, GONE), JSON.stringify(paths), { mode: 0o600 });
  }

  /** Calls of this session without a later event. */
  left(): KeptNote[] {
    let names: string[] = [];
    try {
      names = readdirSync(this.folder);
    } catch {
      return [];
    }
    return names.flatMap((name) =>
      name === GONE || name === CHANGED || name === EDITS ? [] : (this.read(join(this.folder, name)) ?? []),
    );
  }

  private path(call: string, twin: number): string {
    return join(this.folder, `${stateFileName(call)}.${twin}.json`);
  }

  private read(path: string): KeptNote | null {
    try {
      const note = JSON.parse(readFileSync(path, "utf8")) as CallState;
      return {
        note,
        kept_ms: statSync(path).mtimeMs,
        forget: () => rmSync(path, { force: true }),
        keepRunning: (id) =>
          writeFileSync(path, JSON.stringify({ ...note, background: id }), { mode: 0o600 }),
      };
    } catch {
      return null;
    }
  }
}

/**
 * File name for an id: the id if it has the usual form, with marked capitals for case-insensitive disks, or else its
 * hash.
 */
export const stateFileName = (id: string): string =>
  /^[\w-]{1,80}$/.test(id) ? `id-${id.replace(/[A-Z]/g, "=$&")}` : hexHash(id).slice(0, 40);
