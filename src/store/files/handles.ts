/**
 * File descriptors that may be swapped for new ones while a reader still holds them: an old one
 * is closed when the last reader is gone, because its number could otherwise be another file by then.
 */
import type { Disk } from "../logged/disk.ts";

export class Handles {
  private readonly disk: Disk;
  private readers = 0;
  private retired: number[] = [];

  constructor(disk: Disk) {
    this.disk = disk;
  }

  async reading<T>(work: () => Promise<T>): Promise<T> {
    this.readers++;
    try {
      return await work();
    } finally {
      this.readers--;
      if (this.readers === 0) await this.sweep();
    }
  }

  async retire(fd: number | undefined): Promise<void> {
    if (fd === undefined) return;
    this.retired.push(fd);
    if (this.readers === 0) await this.sweep();
  }

  private async sweep(): Promise<void> {
    // Closing may report an old write error; whoever synced has heard of it already.
    for (const fd of this.retired.splice(0)) await this.disk.close(fd).catch(() => {});
  }
}
