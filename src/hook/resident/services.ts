/**
 * What outlives a call: one object per process, which makes each long-lived part on first use and closes it with the
 * process. Parts know one another only through it.
 */

import type { WorkspaceRecords } from "../record/workspace-records.ts";

export interface ResidentServices {
  /** Directory of the hook's settings and of the process's own files. */
  readonly folder: string;
  /** The process's only part of that maker. The first call makes it. */
  part<T extends ResidentPart>(make: PartMaker<T>): T;
  /** Work that may take longer than the answer. Its failure refuses no call. */
  afterwards(work: () => Promise<void>): void;
  /** Waits for the work, and closes the parts. */
  close(): Promise<void>;
}

export interface ResidentPart {
  /** Called once, when the process ends. Calls under way have been answered by then. */
  close?(): void | Promise<void>;
}

export type PartMaker<T extends ResidentPart> = (services: ResidentServices) => T;

export function createServices(folder: string): ResidentServices {
  const working = new Set<Promise<void>>();
  const parts = new Map<PartMaker<ResidentPart>, ResidentPart>();
  const services: ResidentServices = {
    folder,
    part<T extends ResidentPart>(make: PartMaker<T>): T {
      const found = parts.get(make);
      if (found !== undefined) return found as T;
      const made = make(services);
      parts.set(make, made);
      return made;
    },
    afterwards(work) {
      const running = Promise.resolve()
        .then(work)
        .catch(() => {})
        .finally(() => working.delete(running));
      working.add(running);
    },
    async close() {
      await Promise.all(working);
      const open = [...parts.values()].reverse();
      parts.clear();
      await Promise.allSettled(open.map(async (part) => part.close?.()));
    },
  };
  return services;
}

/** What the launcher of `svc run` proves about an event of its confined command. */
export interface ConfinedCaller {
  /** The launcher's own run, and its secret. Only the launcher knows it. */
  run_id: string;
  secret: string;
  /** The only directory of the machine that the command writes to. */
  workspace: string;
}

/** What one event may use: the process's parts, and the way to its carrier. */
export interface CallContext {
  services: ResidentServices;
  /** Records of workspaces. Null in a process that ends with the call. */
  records: WorkspaceRecords | null;
  /** The command inside `svc run` that the event comes from. */
  confined?: ConfinedCaller | undefined;
  /** Aborts when the time for the answer is over or the client is gone. */
  signal: AbortSignal;
  /** Tells the carrier to wait this much longer than usual. */
  extend(ms: number): void;
  /** Aborts when the process makes place for another. Held calls are then answered at once. */
  ending: AbortSignal;
  /** Whether the carrier still waits for the answer. */
  isAwaited(): Promise<boolean>;
}

/** For a process that decides a single call. Its parent is the client, or a shell that the client started. */
export const singleCall = (folder: string): CallContext => ({
  services: createServices(folder),
  records: null,
  signal: new AbortController().signal,
  extend: () => {},
  ending: new AbortController().signal,
  isAwaited: async () => process.ppid === PARENT,
});

const PARENT = process.ppid;
