/**
 * A real, separate file system in a file: it can be filled, frozen, made read-only and have its power
 * cut, without harm to anybody. Needs root and loop devices; where those are missing, so are its tests.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { tempDir } from "./tmp.ts";

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

export class LoopDisk {
  readonly mount: string;
  private readonly image: string;
  private isMounted = false;
  private rescuer: ChildProcess | undefined;

  private constructor(image: string, mount: string) {
    this.image = image;
    this.mount = mount;
  }

  static make(megabytes = 24): LoopDisk {
    const root = tempDir("disk");
    const disk = new LoopDisk(join(root, "image"), join(root, "mount"));
    writeFileSync(disk.image, "");
    truncateSync(disk.image, megabytes * 1_048_576);
    run("mkfs.ext4", "-q", "-F", disk.image);
    mkdirSync(disk.mount);
    disk.attach();
    return disk;
  }

  /** Whether this machine lets us. */
  static get isPossible(): boolean {
    try {
      LoopDisk.make(8).dispose();
      return true;
    } catch {
      return false;
    }
  }

  /** What would be found if the power went now: a disk with the blocks that have reached this one. */
  afterPowerCut(): LoopDisk {
    const root = tempDir("disk");
    const copy = new LoopDisk(join(root, "image"), join(root, "mount"));
    copyFileSync(this.image, copy.image);
    mkdirSync(copy.mount);
    copy.attach();
    return copy;
  }

  freeze(): void {
    // A process that hangs on a frozen disk cannot thaw it or even end, so another process thaws it in the end.
    this.rescuer = spawn("sh", ["-c", 'sleep 120; fsfreeze -u "$1" 2>/dev/null', "sh", this.mount], {
      detached: true,
      stdio: "ignore",
    });
    this.rescuer.unref();
    run("fsfreeze", "-f", this.mount);
  }

  thaw(): void {
    run("fsfreeze", "-u", this.mount);
    if (this.rescuer?.pid !== undefined && this.rescuer.exitCode === null) process.kill(-this.rescuer.pid);
    this.rescuer = undefined;
  }

  fill(): void {
    const fd = openSync(join(this.mount, "filler"), "a");
    for (let size = 1_048_576; size >= 512; ) {
      try {
        writeSync(fd, Buffer.alloc(size, 1));
      } catch {
        size >>= 1;
      }
    }
    closeSync(fd);
  }

  empty(): void {
    rmSync(join(this.mount, "filler"));
  }

  /** As the kernel does when it finds the file system broken. */
  makeReadOnly(): void {
    const device = run("losetup", "-j", this.image).split(":")[0]!.split("/").pop()!;
    writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, "1");
  }

  dispose(): void {
    if (!this.isMounted) return;
    this.isMounted = false;
    try {
      this.thaw();
    } catch {
      // It was not frozen.
    }
    run("umount", "-l", this.mount);
  }

  private attach(): void {
    run("mount", "-o", "loop,errors=remount-ro", this.image, this.mount);
    this.isMounted = true;
  }
}
