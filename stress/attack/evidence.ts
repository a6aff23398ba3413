/** Sound evidence for the fuzzer to change: a ledger, its bundles, its anchors. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { anchorLine, makeAnchor } from "../../src/evidence/anchors/anchor.ts";
import { ledgerBundle, runBundle } from "../../src/evidence/bundles/bundle.ts";
import type { TrustedKeys } from "../../src/evidence/key-files.ts";
import { newKeyPair, parseSigningKey } from "../../src/evidence/signing.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { drafts } from "../../test/evidence/support/ledgers.ts";

export interface Evidence {
  texts: { ledger: string[]; bundle: string[]; anchor: string[] };
  trusted: TrustedKeys;
  /** Where a changed text is put for a verifier that reads files. */
  file: string;
  ledger_file: string;
}

const EXPORTED_MS = 1_790_000_000_000;

export async function makeEvidence(folder: string): Promise<Evidence> {
  const key = parseSigningKey(newKeyPair().private_pem, "key");
  const store = new MemoryStore();
  const list = drafts(5, 12);
  const anchors: string[] = [];
  for (const [i, draft] of list.entries()) {
    await store.transact({ run: (tx) => void tx.append(draft) });
    if (i % 4 === 3) {
      const anchor = await makeAnchor(store, { now: () => EXPORTED_MS + i, region: null, signing: key });
      anchors.push(anchorLine(anchor).trimEnd());
    }
  }
  const lines = await store.records({ limit: 1_000 });
  const ledger = lines.map((line) => `${line}\n`).join("");
  const ledger_file = join(folder, "ledger.jsonl");
  writeFileSync(ledger_file, ledger);
  let whole = "";
  for await (const part of ledgerBundle(store, key, EXPORTED_MS)) whole += part;
  const run_id = list.find((draft) => draft.run_id !== undefined)!.run_id!;
  return {
    texts: {
      ledger: [ledger],
      bundle: [whole, (await runBundle(store, run_id, key, EXPORTED_MS)).join("")],
      anchor: [`${anchors.join("\n")}\n`],
    },
    trusted: new Map([[key.key_id, key]]),
    file: join(folder, "changed"),
    ledger_file,
  };
}
