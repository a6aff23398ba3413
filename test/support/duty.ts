/** What a thread of src/child-process/thread-pool.test.ts does: what its job says. */
import { appendFileSync } from "node:fs";
import { serveThread } from "../../src/child-process/thread-pool.ts";
import { SvcError } from "../../src/kernel/errors.ts";

export type DutyJob = "stand" | "die" | "refuse" | { echo: string };

serveThread((log: string) => ({
  work: (job: DutyJob) => {
    if (job === "stand") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    if (job === "die") process.exit(1);
    if (job === "refuse") throw new SvcError("conflict", "not now");
    return typeof job === "string" ? job : job.echo;
  },
  end: () => appendFileSync(log, "ended\n"),
}));
