/**
 * Loaded into a server under test (`--import`): its disk does what files in the folder SVC_TEST_DISK_HOOKS say.
 *
 * hold-sync: a sync ends only when the file is gone.
 * fail-sync: a sync fails with EIO; with `once` in it, only the next one does.
 * stop-locked: the process stops itself (SIGSTOP) the next time it holds the store's lock, before it has written.
 * stop-writing: the process stops itself when a batch has been written to the ledger or the database.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";

const folder = process.env.SVC_TEST_DISK_HOOKS;
const { existsSync, readFileSync, unlinkSync, statSync } = fs;
const at = (name) => join(folder, name);

/** Whether the file was there; it is gone then. */
function take(name) {
  try {
    unlinkSync(at(name));
    return true;
  } catch {
    return false;
  }
}

const stop = () => process.kill(process.pid, "SIGSTOP");

function hooked(original) {
  return function sync(fd, callback) {
    if (take("stop-writing")) stop();
    if (existsSync(at("fail-sync"))) {
      if (readFileSync(at("fail-sync"), "utf8") === "once") take("fail-sync");
      setImmediate(callback, Object.assign(new Error("EIO: made up"), { code: "EIO" }));
      return;
    }
    original.call(fs, fd, (error) => {
      const end = () => (existsSync(at("hold-sync")) ? setTimeout(end, 10) : callback(error));
      end();
    });
  };
}

fs.fsync = hooked(fs.fsync);
fs.fdatasync = hooked(fs.fdatasync);
// Under the lock the store checks whether its files are still where they were; nobody else asks for them by name.
fs.statSync = function stat(path, options) {
  if (/(?:ledger\.jsonl|svc\.db)$/.test(String(path)) && take("stop-locked")) stop();
  return statSync.call(fs, path, options);
};
syncBuiltinESMExports();
