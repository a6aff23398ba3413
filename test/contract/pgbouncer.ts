/** PgBouncer itself in transaction mode, on a machine that has it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pgUser } from "../support/pg-binaries.ts";

const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` };

export const hasPgBouncer = spawnSync("pgbouncer", ["--version"], { env }).status === 0;

export class PgBouncer {
  readonly url: string;
  private readonly child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.child = child;
  }

  static async start(target: string, places: number): Promise<PgBouncer> {
    const { hostname, port, username, password } = new URL(target);
    const own = new URL(target);
    own.port = String(await freePort());
    const folder = mkdtempSync(join(tmpdir(), "svc-pgbouncer-"));
    const file = join(folder, "pgbouncer.ini");
    const users = join(folder, "users.txt");
    if (pgUser.uid !== undefined && pgUser.gid !== undefined) chownSync(folder, pgUser.uid, pgUser.gid);
    writeFileSync(users, `"${username}" "${password}"\n`);
    writeFileSync(
      file,
      [
        "[databases]",
        `* = host=${hostname} port=${port}`,
        "[pgbouncer]",
        "pool_mode = transaction",
        `default_pool_size = ${places}`,
        "listen_addr = 127.0.0.1",
        `listen_port = ${own.port}`,
        "unix_socket_dir =",
        "auth_type = plain",
        `auth_file = ${users}`,
      ].join("\n"),
    );
    // Like PostgreSQL, it refuses to run as root.
    const child = spawn("pgbouncer", ["-q", file], { ...pgUser, cwd: folder, env, stdio: "ignore" });
    child.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const bouncer = new PgBouncer(own.href, child);
    while (!(await answers(Number(own.port)))) {
      if (child.exitCode !== null) throw new Error(`pgbouncer ended with code ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return bouncer;
  }

  stop(): void {
    this.child.kill("SIGKILL");
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const said = await once(socket, "connect").catch(() => undefined);
  socket.destroy();
  return said !== undefined;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
