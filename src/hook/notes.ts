/** What is remembered of a call between the event before it and the one after it: two processes, one file each call. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FileLook } from "./files.ts";
import { hexHash } from "./hash.ts";

export interface Note {
  run: string;
  step: number;
  tool: string;
  agent: string | null;
  /** Where a command ran and when it began, so that what it changed can be told; null for what runs no command. */
  command: { cwd: string; began_ms: number } | null;
  /** The files whose bytes are in `before`. */
  files: string[];
  before: FileLook | null;
  /** Only started so far: the client's id of it, or "" where it gave none. Left out for a call that ends with its event. */
  background?: string;
  /** The event after it means that it was started. */
  started_only?: boolean;
}

interface KeptNote {
  note: Note;
  /** When it was kept by the clock that stamps files, which lags behind the one that programs read. */
  kept_ms: number;
  forget(): void;
  /** Keeps it as one that runs in the background. */
  keepRunning(id: string): void;
}

const MOST_TWINS = 99;
const GONE = "gone";

export class Notes {
  private readonly folder: string;

  constructor(root: string, session: string) {
    this.folder = join(root, nameOf(session));
  }

  keep(call: string, note: Note): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    // A client that does not number its calls may make the same one twice at once.
    for (let twin = 0; ; twin++) {
      try {
        writeFileSync(this.path(call, twin), JSON.stringify(note), { mode: 0o600, flag: "wx" });
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST" || twin >= MOST_TWINS) throw error;
      }
    }
  }

  find(call: string): KeptNote | null {
    for (let twin = 0; twin <= MOST_TWINS; twin++) {
      const found = this.read(this.path(call, twin));
      if (found !== null && found.note.background === undefined) return found;
    }
    return null;
  }

  /** Files that were gone when the work tree was last looked at. */
  gone(): Set<string> {
    try {
      return new Set(JSON.parse(readFileSync(join(this.folder, GONE), "utf8")) as string[]);
    } catch {
      return new Set();
    }
  }

  keepGone(paths: readonly string[]): void {
    writeFileSync(join(this.folder, GONE), JSON.stringify(paths), { mode: 0o600 });
  }

  /** The calls of this session that no event came after. */
  left(): KeptNote[] {
    let names: string[] = [];
    try {
      names = readdirSync(this.folder);
    } catch {
      return [];
    }
    return names.flatMap((name) => (name === GONE ? [] : (this.read(join(this.folder, name)) ?? [])));
  }

  private path(call: string, twin: number): string {
    return join(this.folder, `${nameOf(call)}.${twin}.json`);
  }

  private read(path: string): KeptNote | null {
    try {
      const note = JSON.parse(readFileSync(path, "utf8")) as Note;
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

/** An id as a file's name: itself where it looks as ids do, capitals marked for disks that fold them; else its hash. */
const nameOf = (id: string): string =>
  /^[\w-]{1,80}$/.test(id) ? `id-${id.replace(/[A-Z]/g, "=$&")}` : hexHash(id).slice(0, 40);
