/** A thread that does one sandbox job and ends. It has no store and no network: history is sent to it. */
import { once } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf, ProblemsError, SvcError } from "../../kernel/errors.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import type { Job, Message, Page } from "./job.ts";
import { doJob } from "./work.ts";

const port = parentPort!;
const say = (message: Message) => port.postMessage(message);

async function* history(): AsyncGenerator<readonly PastCall[]> {
  for (;;) {
    say({ say: "next" });
    const [page] = (await once(port, "message")) as [Page];
    if (page === null) return;
    yield page;
  }
}

try {
  say({ say: "done", report: JSON.stringify(await doJob(workerData as Job, history())) });
} catch (error) {
  if (error instanceof SvcError) {
    const problems = error instanceof ProblemsError ? error.problems : null;
    say({ say: "failed", code: error.code, message: error.message, problems });
  } else say({ say: "broken", message: messageOf(error) });
}
port.close();
