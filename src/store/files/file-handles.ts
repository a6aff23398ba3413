/**
 * File descriptors that can be replaced while a reader still uses them. An old descriptor is closed after its last
 * reader, because its number could otherwise already belong to another file.
 */
import type { DiskOps } from "../journal/disk.ts";

export class FileHandles {
  private readonly disk: DiskOps;
  private readers = 0;
  private retired: number[] = [];

  constructor(disk: DiskOps) {
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
    // Closing can report an old write error, which the caller of sync already has.
    for (const fd of this.retired.splice(0)) await this.disk.close(fd).catch(() => {});
  }
}
