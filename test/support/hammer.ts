/** Starts a process that writes to a store until it is stopped, and knows every acknowledged write. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { compiled } from "./compiled.ts";
import { until } from "./until.ts";

const SCRIPT = compiled("test/support/store-hammer.ts");

export class Hammer {
  readonly acked: string[] = [];
  private readonly child: ChildProcess;

  constructor(kind: string, folder: string, label: string) {
    this.child = spawn(process.execPath, [SCRIPT, kind, folder, label], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    let rest = "";
    this.child.stdout!.on("data", (chunk) => {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop()!;
      this.acked.push(...lines);
    });
  }

  async untilAcked(count: number): Promise<void> {
    const wanted = this.acked.length + count;
    await until(() => {
      if (this.child.exitCode !== null) throw new Error(`the writer ended with ${this.child.exitCode}`);
      return this.acked.length >= wanted;
    }, `${count} units to be acknowledged`);
  }

  /** Stops it at once. */
  pause(): void {
    this.child.kill("SIGSTOP");
  }

  async kill(): Promise<void> {
    const closed = once(this.child.stdout!, "close");
    this.child.kill("SIGKILL");
    await closed;
  }
}
