/** A disk that fails on demand: at the k-th call of those that can fail on a real one. */
import type { WorkerHandle, WorkerJobs } from "../../src/store/journal/checkpoint/worker-handle.ts";
import { isBusy } from "../../src/store/journal/connection.ts";
import { type DiskOps, nodeDisk } from "../../src/store/journal/disk.ts";

export interface Fault {
  /** Which call fails, counted from 1. */
  call: number;
  code: "EIO" | "ENOSPC" | "EROFS";
  /** A write gets half of its bytes onto the disk before it fails. */
  half?: boolean;
  /** Every later call fails as well, until healed. */
  lasting?: boolean;
}

export interface FaultyDisk extends DiskOps {
  /** How many calls that may fail were made. */
  readonly calls: number;
  /** The calls, in order. */
  readonly log: readonly string[];
  fail(fault: Fault | undefined): void;
}

export function faultyDisk(): FaultyDisk {
  let fault: Fault | undefined;
  const log: string[] = [];
  const isDue = (name: string): boolean => {
    log.push(name);
    if (fault === undefined || log.length < fault.call) return false;
    return fault.lasting === true || log.length === fault.call;
  };
  const failure = (): Error => Object.assign(new Error(`${fault!.code}: made up`), { code: fault!.code });
  const wrap =
    <A extends unknown[], R>(name: string, call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (isDue(name)) throw failure();
      return call(...args);
    };
  return {
    ...nodeDisk,
    open: wrap("open", nodeDisk.open),
    datasync: wrap("datasync", nodeDisk.datasync),
    sync: wrap("sync", nodeDisk.sync),
    truncate: wrap("truncate", nodeDisk.truncate),
    unlink: wrap("unlink", nodeDisk.unlink),
    rename: wrap("rename", nodeDisk.rename),
    touch: wrap("touch", nodeDisk.touch),
    write: async (fd, bytes, position) => {
      if (!isDue("write")) return nodeDisk.write(fd, bytes, position);
      if (fault?.half) await nodeDisk.write(fd, bytes.subarray(0, bytes.length >> 1), position);
      throw failure();
    },
    get calls() {
      return log.length;
    },
    log,
    fail: (next) => {
      fault = next;
    },
  };
}

/**
 * Does a store's background work at once, in this thread: what a test does is then the same every time. A job that
 * finds a lock taken would wait for a batch that cannot continue in the meantime, so it steps back and tries again.
 */
export function inlineHelper(make: () => WorkerJobs): WorkerHandle {
  let jobs: WorkerJobs | undefined;
  return {
    ask: async <T>(job: string, input: unknown) => {
      jobs ??= make();
      for (;;) {
        try {
          return jobs[job]!(input as never) as T;
        } catch (error) {
          if (!isBusy(error)) throw error;
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      }
    },
    close: async () => {
      jobs?.end();
      jobs = undefined;
    },
  };
}
