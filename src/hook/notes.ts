/** What is remembered of a call between the event before it and the one after it: two processes, one file each call. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Look } from "./files.ts";

export interface Note {
  run: string;
  step: number;
  tool: string;
  /** The files whose bytes are in `before`. */
  files: string[];
  before: Look | null;
}

export class Notes {
  private readonly folder: string;

  constructor(root: string, session: string) {
    this.folder = join(root, digest(session));
  }

  keep(call: string, note: Note): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    writeFileSync(this.path(call), JSON.stringify(note), { mode: 0o600 });
  }

  find(call: string): Note | null {
    return this.read(this.path(call));
  }

  forget(call: string): void {
    rmSync(this.path(call), { force: true });
  }

  /** The calls of this session that no event came after. */
  left(): { note: Note; forget(): void }[] {
    let names: string[] = [];
    try {
      names = readdirSync(this.folder);
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      const path = join(this.folder, name);
      const note = this.read(path);
      return note === null ? [] : [{ note, forget: () => rmSync(path, { force: true }) }];
    });
  }

  private path(call: string): string {
    return join(this.folder, `${digest(call)}.json`);
  }

  private read(path: string): Note | null {
    try {
      return JSON.parse(readFileSync(path, "utf8")) as Note;
    } catch {
      return null;
    }
  }
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 40);
