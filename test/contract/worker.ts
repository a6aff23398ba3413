/** A second process on the same data, driven over IPC by worker-client.ts. */
import type { StateStore } from "../../src/govern/port/store.ts";
import { openStore } from "../../src/store/open.ts";
import type { PlaceSettings } from "./place.ts";
import { draft, increment } from "./samples.ts";

export interface Ack {
  seq: number;
  hash: string;
  key: string;
}

/** Everything a worker can be asked to do. */
export interface WorkerOps {
  open(settings: PlaceSettings): void;
  /** Appends records one after the other, each with a shared counter; answers their positions. */
  append(input: { count: number; label: string }): number[];
  /** Uses the approval once if nobody has; answers whether it was this one. */
  claim(input: { key: string; label: string; attempts: number }): number;
  /** Resolves when the store says that something changed. */
  changed(): void;
  /** Appends until killed, telling of each record that was answered for. */
  load(input: { writers: number; label: string }): void;
  head(): { records: number; hash: string };
  close(): void;
}

let store: StateStore;

const ops: { [Op in keyof WorkerOps]: (input: never) => Promise<ReturnType<WorkerOps[Op]>> } = {
  async open(settings: PlaceSettings) {
    store = await openStore({ ...settings, warn: () => {} });
  },

  async append({ count, label }: { count: number; label: string }) {
    const seqs: number[] = [];
    for (let i = 0; i < count; i++) {
      const { seq } = await store.transact({
        needs: [["meta", "shared"]],
        run: (tx) => {
          increment(tx, "shared");
          return tx.append(draft({ actor: label, run_id: `${label}-${i}` }));
        },
      });
      seqs.push(seq);
    }
    return seqs;
  },

  async claim({ key, label, attempts }: { key: string; label: string; attempts: number }) {
    const claims = Array.from({ length: attempts }, () =>
      store.transact({
        needs: [["approvals", key]],
        run: (tx) => {
          const approval = tx.get("approvals", key);
          if (approval?.status !== "approved") return 0;
          tx.put("approvals", key, { ...approval, status: "consumed" });
          tx.append(draft({ actor: label, run_id: key }));
          return 1;
        },
      }),
    );
    return (await Promise.all(claims)).reduce<number>((sum, won) => sum + won, 0);
  },

  async changed() {
    await store.changed(new AbortController().signal);
  },

  async load({ writers, label }: { writers: number; label: string }) {
    const write = async (writer: number): Promise<void> => {
      for (let i = 0; ; i++) {
        const key = `${label}-${writer}-${i}`;
        const { seq, hash } = await store.transact({
          run: (tx) => {
            const record = tx.append(draft({ run_id: key }));
            tx.put("meta", key, { seq: record.seq, hash: record.hash });
            return record;
          },
        });
        process.send!({ ack: { seq, hash, key } satisfies Ack });
      }
    };
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
  },

  async head() {
    const { records, hash } = await store.head();
    return { records, hash };
  },

  async close() {
    await store.close();
    process.disconnect();
  },
};

process.on("message", async ({ id, op, input }: { id: number; op: keyof WorkerOps; input: never }) => {
  try {
    const value = await ops[op](input);
    if (process.connected) process.send!({ id, value });
  } catch (error) {
    if (process.connected)
      process.send!({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
// Nobody is left to ask anything.
process.on("disconnect", () => process.exit(0));
process.send!({ up: true });
