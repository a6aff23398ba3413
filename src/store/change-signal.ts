/** A wake-up signal with any number of waiters. */
export interface ChangeSignal {
  notify(): void;
  wait(signal: AbortSignal): Promise<void>;
  readonly waiting: number;
}

export function changeSignal(): ChangeSignal {
  const waiters = new Set<() => void>();
  return {
    notify() {
      for (const wake of [...waiters]) wake();
    },
    wait(signal) {
      if (signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = () => {
          waiters.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        waiters.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    },
    get waiting() {
      return waiters.size;
    },
  };
}
