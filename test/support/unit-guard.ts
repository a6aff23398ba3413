/**
 * Runs before every unit test file. A unit test starts no process, opens no socket and asks no database: the guard
 * refuses each of them, so that the lane stays fast and answers the same on every machine.
 */
import childProcess from "node:child_process";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

function refuse(act: string): () => never {
  return () => {
    throw new Error(
      `A unit test must not ${act}. Move it to test/, or name its file in MACHINE_TESTS of vitest.config.ts.`,
    );
  };
}

net.Server.prototype.listen = refuse("listen on a socket");
net.Socket.prototype.connect = refuse("connect to a socket");
dns.lookup = Object.assign(refuse("look a host up"), { __promisify__: refuse("look a host up") });
for (const start of ["spawn", "spawnSync", "exec", "execSync", "execFile", "execFileSync", "fork"] as const)
  childProcess[start] = refuse("start a process") as never;
syncBuiltinESMExports();
