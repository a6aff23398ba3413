import { describe, expect, it } from "vitest";
import { bundleOf, freshKey } from "../../test/evidence/support/bundles.ts";
import { drafts, storeOf } from "../../test/evidence/support/ledgers.ts";
import { leafOf, plainRoot } from "../../test/evidence/support/oracle.ts";
import { tempFile } from "../../test/support/tmp.ts";
import { rootFromProof } from "../ledger/merkle-tree.ts";
import type { RecordDraft } from "../ledger/record.ts";
import type { MemoryStore } from "../store/memory/store.ts";
import { verifyBundle } from "./bundles/verify-bundle.ts";
import { BLOCK_RECORDS, LedgerTree, treeOf } from "./ledger-tree.ts";
import { verifyStoreLedger } from "./verify-ledger.ts";

function append(store: MemoryStore, list: readonly RecordDraft[]): Promise<void> {
  return store.transact({
    run(tx) {
      for (const { run_id: _, run_seq: __, ...draft } of list) tx.append(draft);
    },
  });
}

async function wholeRoot(store: MemoryStore): Promise<string> {
  return plainRoot((await store.records({ limit: 1e9 })).map(leafOf));
}

/** Counts how many lines were asked of the store. */
function counting(store: MemoryStore) {
  const records = store.records.bind(store);
  const seen = { lines: 0 };
  store.records = async (query) => {
    const lines = await records(query);
    seen.lines += lines.length;
    return lines;
  };
  return seen;
}

describe("the tree of a ledger", () => {
  it("has the right root and proofs at sizes around its blocks", async () => {
    const store = await storeOf([]);
    const tree = new LedgerTree(store);
    for (const grow of [0, 1, 5, BLOCK_RECORDS - 7, 1, 1, BLOCK_RECORDS, 700, 3 * BLOCK_RECORDS]) {
      await append(store, drafts(grow, grow));
      const snapshot = await tree.snapshot();
      expect(snapshot.tree).toEqual({ size: (await store.head()).records, root: await wholeRoot(store) });
      const { size, root } = snapshot.tree;
      for (const seq of new Set(
        [0, size >> 1, size - BLOCK_RECORDS, size - 2, size - 1].filter((n) => n >= 0 && n < size),
      )) {
        const { lines, leaves } = await tree.readBlock(snapshot, Math.floor(seq / BLOCK_RECORDS));
        const leaf = leafOf(lines[seq % BLOCK_RECORDS]!);
        expect(rootFromProof(leaf, seq, size, tree.proof(snapshot, seq, leaves))).toBe(root);
      }
    }
  });

  it("proves for an earlier snapshot after the ledger grew past its last block", async () => {
    const store = await storeOf([]);
    const tree = new LedgerTree(store);
    await append(store, drafts(1, BLOCK_RECORDS + 300));
    const early = await tree.snapshot();
    await append(store, drafts(2, 2 * BLOCK_RECORDS));
    await tree.snapshot();
    for (const seq of [5, BLOCK_RECORDS + 7]) {
      const { lines, leaves } = await tree.readBlock(early, Math.floor(seq / BLOCK_RECORDS));
      const proof = tree.proof(early, seq, leaves);
      expect(rootFromProof(leafOf(lines[seq % BLOCK_RECORDS]!), seq, early.records, proof)).toBe(
        early.tree.root,
      );
    }
  });

  it("reads full blocks once, and afterwards only what it needs", async () => {
    const store = await storeOf([]);
    await append(store, drafts(1, 10 * BLOCK_RECORDS + 10));
    const seen = counting(store);
    await treeOf(store).snapshot();
    expect(seen.lines).toBe(10 * BLOCK_RECORDS + 10);
    seen.lines = 0;
    await treeOf(store).snapshot();
    expect(seen.lines).toBe(10);
  });

  it("lets another thread hash a large ledger", async () => {
    const store = await storeOf([]);
    const draft = { ts_ms: 1, event: "reloaded", actor: "x" } as const;
    await append(store, Array(20_500).fill(draft));
    const snapshot = await treeOf(store).snapshot();
    const { root, records } = await verifyStoreLedger(store, { tree: true, threads: 2 });
    expect([snapshot.records, snapshot.tree.root]).toEqual([records, root]);
  });

  it("makes bundles of a run in a large ledger that verify", async () => {
    const key = freshKey();
    const store = await storeOf(drafts(8, 3 * BLOCK_RECORDS + 17));
    const text = await bundleOf(store, key, "run_8-0");
    const found = await verifyBundle(tempFile("b.json", text), new Map([[key.key_id, key]]));
    expect(found).toMatchObject({ ok: true, report: { tree_size: 3 * BLOCK_RECORDS + 17 } });
    expect(await bundleOf(store, key, "run_8-0")).toBe(text);
  });

  it("signs nothing once the store no longer holds what it held", async () => {
    const key = freshKey();
    const list = drafts(8, 2 * BLOCK_RECORDS + 50);
    const store = await storeOf(list);
    await treeOf(store).snapshot();
    const records = store.records.bind(store);
    const seq = list.findIndex((draft) => draft.run_id === "run_8-0");
    const lie = (line: string) =>
      line.includes(`"seq":${seq},`) ? line.replace('"event":"', '"event":"x') : line;
    store.records = async (query) => (await records(query)).map(lie);
    await expect(bundleOf(store, key, "run_8-0")).rejects.toThrow(
      /does not verify at record \d+: .*nothing was signed/,
    );
    await expect(bundleOf(store, key)).rejects.toThrow(`does not verify at record ${seq}`);
    // A record that the index of the run does not find any more.
    store.records = async (query) =>
      (await records(query)).filter((line) => query.run_id === undefined || !line.includes('"run_seq":3,'));
    await expect(bundleOf(store, key, "run_8-0")).rejects.toThrow("not the next record of its run");
    store.records = records;
    const truncated = { ...(await store.head()), records: 5 };
    store.head = async () => truncated;
    await expect(treeOf(store).snapshot()).rejects.toThrow("it has been truncated");
  });
});
