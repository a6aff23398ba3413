/** A process of the fault run as its driver sees it: asked, listened to, and killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Ack, Place, WorkerOps } from "./protocol.ts";

const SCRIPT = fileURLToPath(new URL("./worker.js", import.meta.url));
/** Longer than any wait that the service allows itself. */
const PATIENCE_MS = 300_000;

interface Message {
  up?: true;
  ack?: Ack;
  id?: number;
  value?: unknown;
  error?: string;
}

export class Writer {
  readonly acks: Ack[] = [];
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private readonly listeners = new Set<() => void>();
  private readonly silent: Promise<unknown>;
  private trouble: Error | undefined;
  private next = 0;

  private constructor() {
    this.child = spawn(process.execPath, [SCRIPT], { stdio: ["pipe", "pipe", "inherit"] });
    this.child.stdin!.on("error", () => {});
    const lines = createInterface({ input: this.child.stdout! });
    lines.on("line", (line) => this.hear(JSON.parse(line) as Message));
    this.silent = once(lines, "close").then(() => this.end());
  }

  static async start(): Promise<Writer> {
    const writer = new Writer();
    await writer.until(() => writer.isUp);
    return writer;
  }

  private isUp = false;

  get pid(): number {
    return this.child.pid!;
  }

  ask<Op extends keyof WorkerOps>(
    op: Op,
    ...input: Parameters<WorkerOps[Op]>
  ): Promise<ReturnType<WorkerOps[Op]>> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.child.stdin!.write(`${JSON.stringify({ id, op, input: input[0] })}\n`);
    });
  }

  /** Waits until the condition holds; it is checked whenever the process prints something. */
  async until(holds: () => boolean): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!holds()) {
      if (this.trouble !== undefined) throw this.trouble;
      if (Date.now() > deadline) throw new Error("a process of the fault run has stalled");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, 1_000);
        const { listeners } = this;
        function done(): void {
          clearTimeout(timer);
          listeners.delete(done);
          resolve();
        }
        listeners.add(done);
      });
    }
  }

  /** SIGKILL, and everything that it said before. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.silent;
  }

  private hear(message: Message): void {
    if (message.up) this.isUp = true;
    if (message.ack !== undefined) this.acks.push(message.ack);
    if (message.id !== undefined) {
      const waiter = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error === undefined) waiter?.resolve(message.value);
      else waiter?.reject(new Error(message.error));
    } else if (message.error !== undefined) this.trouble = new Error(message.error);
    for (const tell of [...this.listeners]) tell();
  }

  private end(): void {
    this.trouble ??= new Error("the process has ended");
    for (const { reject } of this.waiting.values()) reject(this.trouble);
    for (const tell of [...this.listeners]) tell();
  }
}

/** Processes that are started before they are needed, so that a trial does not wait for them. */
export class Crew {
  private readonly spares: Promise<Writer>[] = [];
  private readonly hired = new Set<Writer>();
  private readonly size: number;

  constructor(size: number) {
    this.size = size;
  }

  async hire(place: Place): Promise<Writer> {
    while (this.spares.length < this.size) this.spares.push(Writer.start());
    const writer = await this.spares.shift()!;
    this.hired.add(writer);
    await writer.ask("open", place);
    return writer;
  }

  hireAll(count: number, place: Place): Promise<Writer[]> {
    return Promise.all(Array.from({ length: count }, () => this.hire(place)));
  }

  async dismiss(...writers: Writer[]): Promise<void> {
    for (const writer of writers) this.hired.delete(writer);
    await Promise.all(writers.map((writer) => writer.kill()));
  }

  async close(): Promise<void> {
    const spares = await Promise.all(this.spares.splice(0));
    await this.dismiss(...spares, ...this.hired);
  }
}
