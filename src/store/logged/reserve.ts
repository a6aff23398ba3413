/**
 * A few blocks put aside for the day the disk is full: so that whoever has to stop everything can still
 * have that recorded. Spent only on units that halt, and filled up again before anything else is taken.
 */
import { join } from "node:path";
import { type Disk, syncFolder, writeAll } from "./disk.ts";

const NAME = "reserve";
const BYTES = 262_144;

export class Reserve {
  private readonly disk: Disk;
  private readonly folder: string;
  private spent = false;

  constructor(disk: Disk, folder: string) {
    this.disk = disk;
    this.folder = folder;
  }

  get isSpent(): boolean {
    return this.spent;
  }

  /** Makes it whole; rejects where there is no room. */
  async fill(): Promise<void> {
    const path = join(this.folder, NAME);
    const before = this.disk.factsAt(path);
    if (before?.size !== BYTES) {
      this.spent = true;
      const fd = await this.disk.open(path, "w");
      try {
        // Written, not left as a hole: only blocks that are taken can be given back.
        await writeAll(this.disk, fd, Buffer.alloc(BYTES, 0x2e), 0);
        await this.disk.datasync(fd);
      } finally {
        await this.disk.close(fd);
      }
      if (before === undefined) await syncFolder(this.disk, this.folder);
    }
    this.spent = false;
  }

  /** Gives its blocks back to the disk. */
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
