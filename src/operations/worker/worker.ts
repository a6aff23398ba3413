/**
 * Thread that executes sandbox jobs one after the other. It has no store and no network; the host sends it the history.
 */
import type { MessagePort } from "node:worker_threads";
import { serveThread } from "../../child-process/thread-pool.ts";
import { doJob } from "./execute.ts";
import type { PastCalls, SandboxJob, SandboxJobMessage } from "./job.ts";
import { type ParseTask, runParseTask } from "./parse-tasks.ts";

async function* history(port: MessagePort): AsyncGenerator<PastCalls> {
  for (;;) {
    port.postMessage("next");
    const page = await new Promise<PastCalls | null>((resolve) => port.once("message", resolve));
    if (page === null) return;
    yield page;
  }
}

serveThread(() => ({
  work: async ({ job: text, wanted }: SandboxJobMessage) => {
    const job = JSON.parse(text) as SandboxJob | ParseTask;
    return JSON.stringify("read" in job ? runParseTask(job) : await doJob(job, history(wanted)));
  },
}));
