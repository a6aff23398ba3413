/** Thread that verifies chunks of a ledger: byte ranges of a file, or lines from a message. */
import type { TransferListItem } from "node:worker_threads";
import { serveThread } from "../../child-process/thread-pool.ts";
import type { ChunkSummary } from "./chunk.ts";
import { type CheckSetup, type CheckTask, InlineChecker } from "./pool.ts";

serveThread((setup: CheckSetup) => {
  const checker = new InlineChecker(setup);
  return {
    work: (task: CheckTask) => checker.check(task),
    transfer: ({ runs }: ChunkSummary) =>
      (runs === null ? [] : [runs.keys, runs.at, runs.first, runs.last]).map(
        ({ buffer }) => buffer as TransferListItem,
      ),
  };
});
