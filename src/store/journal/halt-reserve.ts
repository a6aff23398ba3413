/**
 * Disk space reserved for halts: on a full disk, an operator can still stop all agents on record. Only units that halt
 * use it, and the store refills it before any other write.
 */
import { join } from "node:path";
import { type DiskOps, syncDirectory, writeAll } from "./disk.ts";

const NAME = "reserve";
const BYTES = 262_144;

export class HaltReserve {
  private readonly disk: DiskOps;
  private readonly folder: string;
  private spent = false;

  constructor(disk: DiskOps, folder: string) {
    this.disk = disk;
    this.folder = folder;
  }

  get isSpent(): boolean {
    return this.spent;
  }

  /** Allocates the reserve. Rejects if there is no space. */
  async fill(): Promise<void> {
    const path = join(this.folder, NAME);
    const before = this.disk.factsAt(path);
    if (before?.size !== BYTES) {
      this.spent = true;
      const fd = await this.disk.open(path, "w");
      try {
        // Written bytes, because a sparse file would reserve no blocks.
        await writeAll(this.disk, fd, Buffer.alloc(BYTES, 0x2e), 0);
        await this.disk.datasync(fd);
      } finally {
        await this.disk.close(fd);
      }
      if (before === undefined) await syncDirectory(this.disk, this.folder);
    }
    this.spent = false;
  }

  /** Releases the reserved blocks. */
  async release(): Promise<void> {
    const path = join(this.folder, NAME);
    if ((this.disk.factsAt(path)?.size ?? 0) === 0) return;
    this.spent = true;
    const fd = await this.disk.open(path, "r+");
    try {
      await this.disk.truncate(fd, 0);
      await this.disk.sync(fd);
    } finally {
      await this.disk.close(fd);
    }
  }
}
