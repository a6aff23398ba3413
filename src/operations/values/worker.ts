/** Thread that reads large calls and draws their cards. It has no store; the host sends it the values as JSON. */
import { serveThread } from "../../child-process/thread-pool.ts";
import type { DrawnCards } from "../approvals/draw-cards.ts";
import { doValuesTask } from "./tasks.ts";

/** An answer leaves the thread without a copy. */
const transfer = (done: Partial<DrawnCards>) =>
  done.answer === undefined ? [] : [done.answer.buffer as ArrayBuffer];

serveThread(() => ({ work: doValuesTask, transfer }));
