/** The built server as its own process, as it would run elsewhere. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const HERE = fileURLToPath(new URL(".", import.meta.url));
export const ROOT = join(HERE, "..");

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function untilReady(port: number, child: ChildProcess, every_ms = 100): Promise<void> {
  const end = performance.now() + 60_000;
  while (performance.now() < end) {
    if (child.exitCode !== null) throw new Error(`the measured server ended with code ${child.exitCode}`);
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/healthz`);
      if (answer.ok) return;
    } catch {
      // Not listening yet.
    }
    await new Promise((resolve) => setTimeout(resolve, every_ms));
  }
  throw new Error("the measured server did not start");
}

export interface ServerPlace {
  port: number;
  store: string;
  data: string;
  /** Where `manifests.yaml` and `keys.json` are. */
  folder: string;
  database: string;
  /** What Node is given before the program. */
  node?: readonly string[];
}

export function spawnServer({ port, store, data, folder, database, node = [] }: ServerPlace): ChildProcess {
  const stderr = process.env["SVC_BENCH_LOG"] ? "inherit" : "ignore";
  const program = [...node, join(ROOT, "bin", "svc.js"), "server", "--store", store, "-d", data];
  return spawn(process.execPath, program, {
    stdio: ["ignore", "ignore", stderr],
    cwd: folder,
    env: {
      ...process.env,
      PORT: String(port),
      SVC_MANIFESTS: join(folder, "manifests.yaml"),
      SVC_KEYS: join(folder, "keys.json"),
      SVC_DATABASE_URL: database,
      SVC_LOG_LEVEL: "error",
    },
  });
}

export async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

/** Memory that the process holds now, in MB. */
export function residentMb(child: ChildProcess): number {
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(child.pid)], { encoding: "utf8" })) / 1_024;
}
