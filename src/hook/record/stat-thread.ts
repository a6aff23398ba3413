/** The thread of a helper: compares the metadata of its files with what the index expects. */
import { parentPort, workerData } from "node:worker_threads";
import { statOf } from "./file-states.ts";
import { NO_FILE, STAT_CONTROL, STAT_FIELDS, type StatMessage, type StatShare } from "./stat-share.ts";

const share = workerData as StatShare;
const control = new Int32Array(share.control);
const metadata = new Float64Array(share.metadata);
const differing = new Int32Array(share.differing);
const paths: string[] = [];

function isAsExpected(slot: number): boolean {
  const at = slot * STAT_FIELDS;
  if (metadata[at + 2] === NO_FILE) return true;
  const found = statOf(paths[slot]!);
  return (
    found != null &&
    found.mtimeMs === metadata[at] &&
    found.ctimeMs === metadata[at + 1] &&
    found.size === metadata[at + 2] &&
    found.ino === metadata[at + 3]
  );
}

parentPort!.on("message", (message: StatMessage) => {
  if ("add" in message) {
    for (const { slot, full } of message.add) paths[slot] = full;
    return;
  }
  let found = 0;
  for (let slot = 0; slot < message.look; slot++) if (!isAsExpected(slot)) differing[found++] = slot;
  Atomics.store(control, STAT_CONTROL.found, found);
  Atomics.store(control, STAT_CONTROL.done, message.round);
  Atomics.notify(control, STAT_CONTROL.done);
});
Atomics.store(control, STAT_CONTROL.ready, 1);
