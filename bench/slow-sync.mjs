/** Delays every disk sync of the process to at least one millisecond, as an ordinary disk would take. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const DELAY_MS = Number(process.env.SVC_BENCH_SYNC_MS ?? 1);

function delayed(original) {
  return function sync(fd, callback) {
    const start = performance.now();
    original.call(fs, fd, (error) => {
      const left = DELAY_MS - (performance.now() - start);
      if (left <= 0) callback(error);
      else setTimeout(() => callback(error), left);
    });
  };
}

function delayedSync(original) {
  return function sync(fd) {
    const until = performance.now() + DELAY_MS;
    original.call(fs, fd);
    while (performance.now() < until)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, until - performance.now());
  };
}

fs.fsync = delayed(fs.fsync);
fs.fdatasync = delayed(fs.fdatasync);
fs.fsyncSync = delayedSync(fs.fsyncSync);
fs.fdatasyncSync = delayedSync(fs.fdatasyncSync);
syncBuiltinESMExports();
