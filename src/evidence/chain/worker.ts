/** A thread that checks stretches of a ledger: byte ranges of a file, or lines that it is sent. */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { StretchChecker, type StretchFacts } from "./chunk.ts";
import type { Answer, CheckSetup, Task } from "./pool.ts";
import { LineFile } from "./region.ts";

const setup = workerData as CheckSetup;
const checker = new StretchChecker(setup.options);
const file = setup.path === null ? null : new LineFile(setup.path);

function check(task: Task): StretchFacts {
  if (task.kind === "range") return checker.check(file!.lines(task.region, task.from, task.to));
  return checker.check({ bytes: Buffer.from(task.bytes), length: task.length, is_end: false });
}

parentPort!.on("message", (task: Task) => {
  let answer: Answer;
  try {
    answer = { facts: check(task) };
  } catch (error) {
    answer = {
      error: { code: error instanceof SvcError ? error.code : "unavailable", message: messageOf(error) },
    };
  }
  const runs = "facts" in answer ? answer.facts.runs : null;
  const buffers =
    runs === null ? [] : [runs.keys.buffer, runs.at.buffer, runs.first.buffer, runs.last.buffer];
  parentPort!.postMessage(answer, buffers as ArrayBuffer[]);
});
