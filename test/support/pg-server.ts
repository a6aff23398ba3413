/**
 * One PostgreSQL server of our own, in a temporary folder: start, stop in every manner, freeze, thaw.
 * It never outlives the process that started it, not even one that was killed outright.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, chmodSync, chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { assertOthersMayEnter, type PgBinaries, pgBinaries, pgUser } from "./pg-binaries.ts";
import { freePort } from "./ports.ts";
import { descendants, isGone, isStopped } from "./process-tree.ts";
import { until } from "./until.ts";
import { watchOver } from "./watchdog.ts";

const run = promisify(execFile);
const USER = "svc";
const READY = /ready to accept (?:read-only )?connections/;
const PORT_TAKEN = /could not bind|Address already in use/;

/** smart waits for clients, fast throws them out, immediate skips the checkpoint, kill is SIGKILL for all. */
export type StopMode = "smart" | "fast" | "immediate" | "kill";
const STOP_SIGNAL = { smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" } as const;

export interface PgOptions {
  /** Sync to disk for real. Off by default: a killed process loses nothing without it, only a power cut does. */
  fsync?: boolean;
  /** Other programs than those that npm installed. */
  binaries?: PgBinaries;
  /** Further settings, as for `postgres -c name=value`. */
  settings?: Record<string, string | number>;
}

export class PgServer {
  readonly socketDir: string;
  readonly #binaries: PgBinaries;
  readonly #options: PgOptions;
  readonly #password: string;
  readonly #callOff: () => void;
  #port: number;
  #process: ChildProcess | undefined;
  #log = "";

  private constructor(
    binaries: PgBinaries,
    options: PgOptions,
    place: { folder: string; password: string; port: number },
  ) {
    this.#binaries = binaries;
    this.#options = options;
    this.socketDir = place.folder;
    this.#password = place.password;
    this.#port = place.port;
    this.#callOff = watchOver(place.folder);
  }

  static async create(options: PgOptions = {}): Promise<PgServer> {
    const binaries = options.binaries ?? (await pgBinaries());
    const folder = mkdtempSync(join(tmpdir(), "svc-pg-"));
    assertOthersMayEnter(folder);
    chmodSync(folder, 0o700);
    const password = randomBytes(16).toString("hex");
    const passwordFile = join(folder, "password");
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
    if (pgUser.uid !== undefined && pgUser.gid !== undefined) {
      chownSync(folder, pgUser.uid, pgUser.gid);
      chownSync(passwordFile, pgUser.uid, pgUser.gid);
    }
    const server = new PgServer(binaries, options, { folder, password, port: await freePort() });
    try {
      // biome-ignore format: one option and its value a pair
      const args = ["-D", server.#data, "-U", USER, "-A", "scram-sha-256", "--pwfile", passwordFile,
        "--no-locale", "-E", "UTF8", "--no-sync"];
      await run(binaries.initdb, args, { ...pgUser, cwd: folder, env: { ...process.env, LC_ALL: "C" } });
      await server.start();
    } catch (error) {
      await server.dispose();
      throw error;
    }
    return server;
  }

  /** A copy of this server that follows it from now on; this one is stopped while it is copied. */
  async standby(): Promise<PgServer> {
    await this.stop();
    const folder = mkdtempSync(join(tmpdir(), "svc-pg-"));
    const port = await freePort();
    const copy = new PgServer(this.#binaries, this.#options, { folder, password: this.#password, port });
    try {
      cpSync(this.#data, copy.#data, { recursive: true });
      writeFileSync(join(copy.#data, "standby.signal"), "");
      const primary = `host=127.0.0.1 port=${this.#port} user=${USER} password=${this.#password}`;
      appendFileSync(join(copy.#data, "postgresql.auto.conf"), `primary_conninfo = '${primary}'\n`);
      chmodSync(folder, 0o700);
      const { uid, gid } = pgUser;
      if (uid !== undefined) await run("chown", ["-R", `${uid}:${gid}`, folder]);
      await this.start();
      await copy.start();
      return copy;
    } catch (error) {
      await copy.dispose();
      throw error;
    }
  }

  get #data(): string {
    return join(this.socketDir, "data");
  }

  get port(): number {
    return this.#port;
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  /** What the server wrote to its log; the last 64 KB. */
  get log(): string {
    return this.#log;
  }

  /** A connection URL over TCP. */
  url(database = "postgres"): string {
    return `postgres://${USER}:${this.#password}@127.0.0.1:${this.#port}/${database}`;
  }

  /** A connection URL over the server's unix socket, for what a local deployment would use. */
  socketUrl(database = "postgres"): string {
    const host = encodeURIComponent(this.socketDir);
    return `postgres://${USER}:${this.#password}@localhost:${this.#port}/${database}?host=${host}`;
  }

  /** Starts the stopped server on its old port; only the first start may look for another one. */
  async start(): Promise<void> {
    if (this.#process !== undefined) return;
    const first = this.#log === "";
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#startOnce();
      } catch (error) {
        if (attempt === 5 || !PORT_TAKEN.test(String(error))) throw error;
        if (first) this.#port = await freePort();
      }
    }
  }

  async #startOnce(): Promise<void> {
    const settings: Record<string, string | number> = {
      fsync: this.#options.fsync ? "on" : "off",
      full_page_writes: this.#options.fsync ? "on" : "off",
      max_connections: 200,
      shared_buffers: "64MB",
      lc_messages: "C",
      ...this.#options.settings,
    };
    const pairs = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const args = [
      "-D",
      this.#data,
      "-p",
      String(this.#port),
      "-h",
      "127.0.0.1",
      "-k",
      this.socketDir,
      ...pairs,
    ];
    // A separate group: Ctrl-C on the terminal must not stop it under a test that is still finishing.
    const child = spawn(this.#binaries.postgres, args, {
      ...pgUser,
      cwd: this.socketDir,
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    this.#process = child;
    let output = "";
    let tail = "";
    await new Promise<void>((resolve, reject) => {
      child.stderr?.setEncoding("utf8").on("data", (text: string) => {
        this.#log = (this.#log + text).slice(-65_536);
        if (output.length < 65_536) output += text;
        // Clients that knock in the meantime are logged too, and may be many: all but the last of it is let go.
        tail += text;
        if (READY.test(tail)) resolve();
        tail = tail.slice(-100);
      });
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        if (this.#process === child) this.#process = undefined;
        reject(
          new Error(
            `PostgreSQL ended while starting (${signal ?? `exit ${code}`}):\n${output.slice(-2_000)}`,
          ),
        );
      });
    });
    child.unref();
    (child.stderr as unknown as { unref?(): void } | null)?.unref?.();
  }

  async stop(mode: StopMode = "fast"): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined) return;
    const ended = once(child, "exit");
    child.ref();
    const backends = mode === "kill" ? this.#standStill() : descendants(child.pid);
    // The server last: a backend that misses it would still tell its client so.
    if (mode === "kill") tell([...backends, child.pid], "SIGKILL");
    else child.kill(STOP_SIGNAL[mode]);
    await ended;
    // A backend may outlive the server for a moment, with the shared memory that the next start must find free.
    await until(() => backends.every(isGone), "the backends of a stopped PostgreSQL to end");
  }

  async restart(mode: StopMode = "fast"): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** Freezes the server and all its backends: connections stay open and nothing answers. */
  pause(): void {
    tell(this.#standStill(), "SIGSTOP");
  }

  resume(): void {
    const pid = this.#pid();
    tell([pid, ...descendants(pid)], "SIGCONT");
  }

  /** Ends the server in any state and removes its directory. Safe to call twice. */
  async dispose(): Promise<void> {
    if (this.running) {
      this.resume();
      await this.stop("immediate");
    }
    rmSync(this.socketDir, { recursive: true, force: true });
    this.#callOff();
  }

  #pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error("this PostgreSQL server is not running");
    return pid;
  }

  /** Stops the server itself, so that it starts no backend which the list of them would miss; answers the list. */
  #standStill(): number[] {
    const pid = this.#pid();
    process.kill(pid, "SIGSTOP");
    while (!isStopped(pid) && !isGone(pid));
    return descendants(pid);
  }
}

/** Backends leave the server's process group, so each needs a signal to its own id. */
function tell(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // A backend may have ended since the list was made.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}
