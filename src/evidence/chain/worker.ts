/** A thread that checks stretches of a ledger: byte ranges of a file, or lines that it is sent. */
import type { TransferListItem } from "node:worker_threads";
import { serveThread } from "../../process/threads.ts";
import type { StretchFacts } from "./chunk.ts";
import { CheckHere, type CheckSetup, type CheckTask } from "./pool.ts";

serveThread((setup: CheckSetup) => {
  const checker = new CheckHere(setup);
  return {
    work: (task: CheckTask) => checker.check(task),
    transfer: ({ runs }: StretchFacts) =>
      (runs === null ? [] : [runs.keys, runs.at, runs.first, runs.last]).map(
        ({ buffer }) => buffer as TransferListItem,
      ),
  };
});
