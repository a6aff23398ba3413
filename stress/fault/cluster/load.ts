/** The load of a cluster run: lanes that play one contest after the other until they are stopped. */
import type { Client } from "./client.ts";
import { CONTESTS } from "./contests.ts";
import type { Operation } from "./history.ts";

export class Load {
  readonly operations: Operation[] = [];
  /** Objects that were given up, because nobody knows whether they were made. */
  abandoned = 0;
  private readonly lanes: Promise<void>[];
  private isStopping = false;

  constructor(client: Client, lanes: number, pause_ms: number, random: () => number) {
    const kinds = Object.entries(CONTESTS);
    this.lanes = Array.from({ length: lanes }, async (_, lane) => {
      for (let n = lane; !this.isStopping; n++) {
        const [kind, contest] = kinds[n % kinds.length]!;
        const played = await contest(client, `${kind}-${lane}-${n}`);
        if (played === undefined) this.abandoned++;
        else this.operations.push(...played);
        await new Promise((resolve) => setTimeout(resolve, pause_ms * (0.5 + random())));
      }
    });
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    await Promise.all(this.lanes);
  }
}
