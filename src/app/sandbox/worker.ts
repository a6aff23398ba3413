/** A thread that does sandbox jobs, one after the other. It has no store and no network: history is sent to it. */
import type { MessagePort } from "node:worker_threads";
import { serveThread } from "../../process/threads.ts";
import type { Order, PastCalls } from "./job.ts";
import { doReading } from "./readings.ts";
import { doJob } from "./work.ts";

async function* history(port: MessagePort): AsyncGenerator<PastCalls> {
  for (;;) {
    port.postMessage("next");
    const page = await new Promise<PastCalls | null>((resolve) => port.once("message", resolve));
    if (page === null) return;
    yield page;
  }
}

serveThread(() => ({
  work: async ({ job, wanted }: Order) =>
    JSON.stringify("read" in job ? doReading(job) : await doJob(job, history(wanted))),
}));
