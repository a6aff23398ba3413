/** Starts real second processes and asks them to do things to the store. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { compiled } from "../support/compiled.ts";
import type { PlaceSettings } from "./place.ts";
import type { Ack, WorkerOps } from "./worker.ts";

interface Message {
  up?: true;
  ack?: Ack;
  id?: number;
  value?: unknown;
  error?: string;
}

export class StoreProcess {
  readonly acks: Ack[] = [];
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private readonly onAck = new Set<() => void>();
  private next = 0;

  private constructor(child: ChildProcess) {
    this.child = child;
    child.on("message", (message: Message) => this.hear(message));
    child.on("exit", () => {
      for (const { reject } of this.waiting.values()) reject(new Error("the process has ended"));
      for (const tell of this.onAck) tell();
    });
  }

  /** Starts the processes side by side and opens the store in each, also side by side. */
  static async start(count: number, settings: PlaceSettings): Promise<StoreProcess[]> {
    const started = Array.from({ length: count }, async () => {
      const child = fork(compiled("test/contract/worker.ts"), {
        execArgv: [],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      });
      await once(child, "message");
      return new StoreProcess(child);
    });
    const processes = await Promise.all(started);
    await Promise.all(processes.map((process) => process.ask("open", settings)));
    return processes;
  }

  ask<Op extends keyof WorkerOps>(
    op: Op,
    ...input: Parameters<WorkerOps[Op]>
  ): Promise<ReturnType<WorkerOps[Op]>> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.child.send({ id, op, input: input[0] });
    });
  }

  /** Resolves once that many records were answered for, or the process has ended. */
  async acked(count: number): Promise<void> {
    while (this.acks.length < count && this.child.exitCode === null && this.child.signalCode === null) {
      await new Promise<void>((resolve) => {
        const tell = (): void => {
          this.onAck.delete(tell);
          resolve();
        };
        this.onAck.add(tell);
      });
    }
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill(signal);
    await ended;
  }

  /** Stops the process at once, with all its locks held. */
  thaw(): void {
    this.child.kill("SIGCONT");
  }

  freeze(): void {
    this.child.kill("SIGSTOP");
  }

  private hear({ ack, id, value, error }: Message): void {
    if (ack !== undefined) {
      this.acks.push(ack);
      for (const tell of [...this.onAck]) tell();
    }
    if (id === undefined) return;
    const waiter = this.waiting.get(id);
    this.waiting.delete(id);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(new Error(error));
  }
}
