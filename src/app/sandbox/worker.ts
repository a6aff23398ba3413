/** A thread that does sandbox jobs, one after the other. It has no store and no network: history is sent to it. */
import { parentPort } from "node:worker_threads";
import { messageOf, ProblemsError, SvcError } from "../../kernel/errors.ts";
import type { Job, Message, Order, Page } from "./job.ts";
import { doReading, type Reading } from "./readings.ts";
import { doJob } from "./work.ts";

const port = parentPort!;
const say = (message: Message) => port.postMessage(message);

const orders: Order[] = [];
let wake = () => {};
port.on("message", (order: Order) => {
  orders.push(order);
  wake();
});

async function nextOrder(): Promise<Order> {
  while (orders.length === 0) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  return orders.shift()!;
}

async function* history(): AsyncGenerator<Page> {
  for (;;) {
    say({ say: "next" });
    const order = await nextOrder();
    if (!("page" in order) || order.page === null) return;
    yield order.page;
  }
}

async function answerTo(job: Job | Reading): Promise<Message> {
  try {
    const report = "read" in job ? doReading(job) : await doJob(job, history());
    return { say: "done", report: JSON.stringify(report) };
  } catch (error) {
    if (!(error instanceof SvcError)) return { say: "broken", message: messageOf(error) };
    const problems = error instanceof ProblemsError ? error.problems : null;
    return { say: "failed", code: error.code, message: error.message, problems };
  }
}

say({ say: "ready" });
for (;;) {
  const order = await nextOrder();
  if ("job" in order) say(await answerTo(order.job));
}
