/**
 * A process that writes to a store as fast as it can until it is killed, and says on standard output
 * which units were acknowledged. Journals are short, so that kills meet checkpoints as well.
 */
import { openFilesStore } from "../../src/store/files/store.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";

// The parent is gone when its end of the pipe closes.
process.stdin.on("end", () => process.exit(1)).resume();

const [kind, folder, label] = process.argv.slice(2) as [string, string, string];
const open = kind === "files" ? openFilesStore : openSqliteStore;
const store = await open(folder, (message) => process.stderr.write(`${message}\n`), {
  bounds: { changes: 80, records: 1_000, bytes: 1_000_000 },
});

async function writer(number: number): Promise<void> {
  for (let i = 0; ; i++) {
    const name = `${label}-${number}-${i}`;
    const count = 1 + (i % 3);
    await store.transact({
      run: (tx) => {
        const seqs = Array.from({ length: count }, (_, n) => {
          const record = {
            ts_ms: tx.head.records,
            event: "intended",
            actor: label,
            run_id: name,
            run_seq: n,
          } as const;
          return tx.append(record).seq;
        });
        const total = ((tx.get("meta", "total") as number | undefined) ?? 0) + count;
        tx.put("meta", "total", total);
        tx.put("run_tools", "counted", { run_id: "all", tool: "any", calls: total, standing: 0 });
        tx.put("meta", `last/${name}`, seqs);
        tx.put("idempotency", name, { run_id: name, step: seqs[0]! });
      },
    });
    process.stdout.write(`${name}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(writer));
