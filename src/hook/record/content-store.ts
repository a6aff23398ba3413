/**
 * Contents of recorded files, in the service's directory: each one once, under its keyed hash, compressed, for the user
 * alone. The key never leaves the directory, so that a hash does not confirm a guessed content.
 */
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeOwnFolder } from "../own-folder.ts";
import { nodeCrypto, nodeZlib } from "./builtin-modules.ts";
import { readGitIndex } from "./git-index.ts";
import { isGitIndex } from "./record-scope.ts";

const KEY_BYTES = 32;
const FILE_MODE = 0o600;
/** A content younger than this is not removed, because its record may not be written yet. */
const YOUNG_MS = 2 * 60 * 60 * 1_000;
/** A content that is used again counts as young from this age on. */
const RENEW_MS = 60 * 60 * 1_000;

export const recordFolder = (folder: string): string => join(folder, "record");

export class ContentStore {
  readonly folder: string;
  private readonly key: Buffer;
  private readonly made = new Set<string>();
  private scratch = 0;

  /** Throws if the directory belongs to another user. `make`: creates missing directories. */
  constructor(folder: string, make: boolean) {
    this.folder = folder;
    if (make) for (const name of ["", "objects", "records", "roots"]) makeOwnFolder(join(folder, name));
    this.key = readKey(join(folder, "key"), make);
  }

  /** Keyed hash of a content. Git's index counts by what it stages. */
  hash(path: string, bytes: Buffer): string {
    const index = isGitIndex(path) ? readGitIndex(bytes) : null;
    return this.hmac(index === null ? bytes : `git-index ${index.meaning}`);
  }

  hmac(data: string | Buffer): string {
    return nodeCrypto().createHmac("sha256", this.key).update(data).digest("hex");
  }

  put(hash: string, bytes: Buffer): void {
    const path = this.pathOf(hash);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined) {
      const now = Date.now();
      if (found.mtimeMs < now - RENEW_MS) utimesSync(path, now / 1_000, now / 1_000);
      return;
    }
    const folder = join(this.folder, "objects", hash.slice(0, 2));
    if (!this.made.has(folder)) makeOwnFolder(folder);
    this.made.add(folder);
    this.write(path, nodeZlib().deflateRawSync(bytes, { level: 1 }));
  }

  /** Null if the content is missing or damaged. */
  get(path: string, hash: string): Buffer | null {
    try {
      const bytes = nodeZlib().inflateRawSync(readFileSync(this.pathOf(hash)));
      return this.hash(path, bytes) === hash ? bytes : null;
    } catch {
      return null;
    }
  }

  /** Bytes on disk, 0 if the content is missing. */
  sizeOf(hash: string): number {
    return statSync(this.pathOf(hash), { throwIfNoEntry: false })?.size ?? 0;
  }

  has(hash: string): boolean {
    return existsSync(this.pathOf(hash));
  }

  /** A file appears whole or not at all. */
  write(path: string, bytes: Buffer): void {
    const fresh = `${path}.${process.pid}.${this.scratch++}.new`;
    writeFileSync(fresh, bytes, { mode: FILE_MODE, flag: "wx" });
    renameSync(fresh, path);
  }

  /** Removes contents that nothing refers to. Returns the bytes that were freed. */
  sweep(isKept: (hash: string) => boolean, now = Date.now()): number {
    let freed = 0;
    for (const { hash, path } of this.objects()) {
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined || isKept(hash) || found.mtimeMs > now - YOUNG_MS) continue;
      rmSync(path, { force: true });
      freed += found.size;
    }
    return freed;
  }

  /** Every content on disk. */
  *objects(): Generator<{ hash: string; path: string }> {
    const top = join(this.folder, "objects");
    for (const part of readdirSync(top))
      for (const name of readdirSync(join(top, part)))
        yield { hash: name.slice(0, 64), path: join(top, part, name) };
  }

  private pathOf(hash: string): string {
    if (!/^[0-9a-f]{64}$/.test(hash)) throw new Error("not the hash of a content");
    return join(this.folder, "objects", hash.slice(0, 2), hash);
  }
}

function readKey(path: string, make: boolean): Buffer {
  if (make && !existsSync(path)) {
    try {
      writeFileSync(path, nodeCrypto().randomBytes(KEY_BYTES), { mode: FILE_MODE, flag: "wx" });
    } catch (error) {
      // Another thread was first.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
  const key = readFileSync(path);
  if (key.length !== KEY_BYTES) throw new Error(`${path}: is not a key of ${KEY_BYTES} bytes`);
  return key;
}
