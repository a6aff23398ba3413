/**
 * A disk whose power can be cut. Until a file is synced, each written sector of it may be
 * lost, in any order; until a directory is synced, a new file's name may be. Lost sectors read as zeros.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type DiskOps, errorCode, nodeDisk } from "../../src/store/journal/disk.ts";

const SECTOR = 512;

type Op = { kind: "write"; offset: number; bytes: Buffer } | { kind: "cut"; size: number };

interface Tracked {
  durable: Buffer;
  pending: Op[];
  size: number;
  /** Whether the file's name would be found after a cut. */
  named: boolean;
  gone: boolean;
}

export class PowerDisk implements DiskOps {
  /** How many calls that change something were made. */
  calls = 0;
  /** From this call on nothing happens any more, and nobody gets an answer. */
  cutAt = Number.POSITIVE_INFINITY;
  private readonly files = new Map<string, Tracked>();
  private readonly paths = new Map<number, string>();

  get isCut(): boolean {
    return this.calls >= this.cutAt;
  }

  private async step(): Promise<void> {
    this.calls++;
    if (this.isCut) await new Promise<never>(() => {});
  }

  async open(path: string, flags: string | number): Promise<number> {
    await this.step();
    const known = this.files.get(path);
    const before = statSync(path, { throwIfNoEntry: false });
    if (before?.isDirectory()) return this.remember(await nodeDisk.open(path, flags), path);
    if (known === undefined || known.gone) {
      const durable = before === undefined ? Buffer.alloc(0) : readFileSync(path);
      this.files.set(path, {
        durable,
        pending: [],
        size: durable.length,
        named: before !== undefined,
        gone: false,
      });
    }
    const file = this.files.get(path)!;
    if (typeof flags === "string" && flags.startsWith("w") && file.size > 0) {
      file.pending.push({ kind: "cut", size: 0 });
      file.size = 0;
    }
    return this.remember(await nodeDisk.open(path, flags), path);
  }

  private remember(fd: number, path: string): number {
    this.paths.set(fd, path);
    return fd;
  }

  openNow(path: string, flags: number): number {
    const fd = nodeDisk.openNow(path, flags);
    this.paths.set(fd, path);
    return fd;
  }

  async write(fd: number, bytes: Uint8Array, position: number | null): Promise<number> {
    await this.step();
    const file = this.tracked(fd);
    const offset = position ?? file.size;
    file.pending.push({ kind: "write", offset, bytes: Buffer.from(bytes) });
    file.size = Math.max(file.size, offset + bytes.length);
    return nodeDisk.write(fd, bytes, position);
  }

  async truncate(fd: number, size: number): Promise<void> {
    await this.step();
    const file = this.tracked(fd);
    file.pending.push({ kind: "cut", size });
    file.size = size;
    await nodeDisk.truncate(fd, size);
  }

  async datasync(fd: number): Promise<void> {
    await this.step();
    this.settle(fd);
  }

  async sync(fd: number): Promise<void> {
    await this.step();
    this.settle(fd);
  }

  async unlink(path: string): Promise<void> {
    await this.step();
    const file = this.files.get(path);
    if (file !== undefined) file.gone = true;
    await nodeDisk.unlink(path);
  }

  rename = nodeDisk.rename;
  mkdir = nodeDisk.mkdir;
  list = nodeDisk.list;
  close = nodeDisk.close;
  touch = nodeDisk.touch;
  read = nodeDisk.read;
  readAsync = nodeDisk.readAsync;
  facts = nodeDisk.facts;
  factsAt = nodeDisk.factsAt;

  /** The content of the directory when the power is back. Databases are taken as they are: SQLite syncs itself. */
  image(folder: string, to: string, random: () => number): void {
    for (const name of readdirSync(folder)) {
      // Shared memory does not outlive the machine.
      if (name.endsWith("-shm") || this.files.has(join(folder, name))) continue;
      try {
        writeFileSync(join(to, name), readFileSync(join(folder, name)));
      } catch (error) {
        // A deletion that was under way has just happened.
        if (errorCode(error) !== "ENOENT") throw error;
      }
    }
    for (const [path, file] of this.files) {
      const isThere = file.named ? !file.gone || random() < 0.5 : !file.gone && random() < 0.5;
      if (isThere) writeFileSync(join(to, basename(path)), survive(file, random));
    }
  }

  private tracked(fd: number): Tracked {
    return this.files.get(this.paths.get(fd)!)!;
  }

  private settle(fd: number): void {
    const path = this.paths.get(fd)!;
    const file = this.files.get(path);
    if (file === undefined) {
      for (const [name, other] of this.files) if (name.startsWith(`${path}/`)) other.named = true;
      return;
    }
    file.durable = applyAll(file.durable, file.pending);
    file.pending = [];
  }
}

function applyAll(start: Buffer, ops: readonly Op[]): Buffer {
  let bytes = start;
  for (const op of ops) bytes = op.kind === "cut" ? resize(bytes, op.size) : put(bytes, op.offset, op.bytes);
  return bytes;
}

function resize(bytes: Buffer, size: number): Buffer {
  if (size <= bytes.length) return Buffer.from(bytes.subarray(0, size));
  return Buffer.concat([bytes, Buffer.alloc(size - bytes.length)]);
}

function put(bytes: Buffer, offset: number, more: Buffer): Buffer {
  const grown = resize(bytes, Math.max(bytes.length, offset + more.length));
  more.copy(grown, offset);
  return grown;
}

function survive({ durable, pending }: Tracked, random: () => number): Buffer {
  const chance = [0, 0.3, 0.7, 1][Math.floor(random() * 4)]!;
  let bytes: Buffer = Buffer.from(durable);
  for (const op of pending) {
    if (op.kind === "cut") {
      if (random() < 0.5) bytes = resize(bytes, op.size);
      continue;
    }
    const end = op.offset + op.bytes.length;
    // The length may be on disk before the bytes are.
    if (random() < 0.3) bytes = resize(bytes, Math.max(bytes.length, end));
    for (let from = op.offset; from < end; ) {
      const to = Math.min(end, (Math.floor(from / SECTOR) + 1) * SECTOR);
      if (random() < chance) bytes = put(bytes, from, op.bytes.subarray(from - op.offset, to - op.offset));
      from = to;
    }
  }
  return bytes;
}
