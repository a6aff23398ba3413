/**
 * Signed bundles: the whole ledger, or one run with an inclusion proof for each of its records. The bundle
 * is written as a stream, one record a line, after every record was read back and its hash checked: what
 * does not verify is never signed.
 */

import { canonical } from "../kernel/canonical.ts";
import { SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { leafHash, TreeBuilder } from "../ledger/tree.ts";
import { ChainVerifier } from "../ledger/verify.ts";
import { ledgerPages } from "../store/pages.ts";
import type { Store } from "../store/port.ts";
import type { SigningKey } from "./signing.ts";

export const BUNDLE_FORMAT = "svc-bundle";

export interface BundleSummary {
  format: typeof BUNDLE_FORMAT;
  version: 1;
  kind: "ledger" | "run";
  run_id: string | null;
  exported_ms: number;
  head: string;
  count: number;
  first_seq: number | null;
  last_seq: number | null;
  tree: { size: number; root: string };
  key_id: string;
}

/** What one pass over the ledger up to a fixed head found. */
interface Pass {
  verifier: ChainVerifier;
  tree: TreeBuilder;
}

async function* checkedPages(
  store: Store,
  pass: Pass,
  choose: (line: string) => boolean,
): AsyncGenerator<string[]> {
  for await (const lines of ledgerPages(store)) {
    for (const line of lines) {
      if (!pass.verifier.take(line)) {
        const bad = pass.verifier.stretch.bad!;
        throw new SvcError(
          "corrupt",
          `the ledger does not verify at record ${bad.seq}: ${bad.problem}; nothing was signed`,
        );
      }
      pass.tree.add(leafHash(pass.verifier.body), choose(line));
    }
    yield lines;
  }
}

/** The text of a whole-ledger bundle. */
export async function* ledgerBundle(
  store: Store,
  key: SigningKey,
  exported_ms: number,
): AsyncGenerator<string> {
  const pass: Pass = { verifier: new ChainVerifier(), tree: new TreeBuilder() };
  yield opening("ledger", null, exported_ms);
  let first = true;
  for await (const lines of checkedPages(store, pass, () => false)) {
    yield `${first ? "\n" : ",\n"}${lines.join(",\n")}`;
    first = false;
  }
  const { records, hash } = pass.verifier.stretch;
  yield closing(key, {
    kind: "ledger",
    run_id: null,
    exported_ms,
    head: hash,
    count: records,
    first_seq: records === 0 ? null : 0,
    last_seq: records === 0 ? null : records - 1,
    tree: { size: records, root: pass.tree.root() },
  });
}

/** The text of a single-run bundle. Throws before the first byte when the run has no records. */
export async function runBundle(
  store: Store,
  run_id: string,
  key: SigningKey,
  exported_ms: number,
): Promise<string> {
  const pass: Pass = { verifier: new ChainVerifier(), tree: new TreeBuilder() };
  const wanted = `"run_id":${JSON.stringify(run_id)},"run_seq":`;
  const records: string[] = [];
  const choose = (line: string): boolean => {
    // The text may also stand inside a string, so a hit is confirmed by reading the record.
    if (!line.includes(wanted) || (JSON.parse(line) as { run_id?: string }).run_id !== run_id) return false;
    records.push(line);
    return true;
  };
  for await (const _ of checkedPages(store, pass, choose));
  if (records.length === 0) throw new SvcError("not_found", `run ${run_id} has no ledger records`);
  const { proofs, size, root } = pass.tree.finish();
  const seqs = [...proofs.keys()];
  const summary = {
    kind: "run" as const,
    run_id,
    exported_ms,
    head: pass.verifier.stretch.hash,
    count: records.length,
    first_seq: seqs[0]!,
    last_seq: seqs[seqs.length - 1]!,
    tree: { size, root },
  };
  return `${opening("run", run_id, exported_ms)}\n${records.join(",\n")}${closing(key, summary, Object.fromEntries(proofs))}`;
}

function opening(kind: string, run_id: string | null, exported_ms: number): string {
  const start = { format: BUNDLE_FORMAT, version: 1, kind, run_id, exported_ms };
  return `${JSON.stringify(start).slice(0, -1)},"records":[`;
}

function closing(
  key: SigningKey,
  facts: Omit<BundleSummary, "format" | "version" | "key_id">,
  proofs: Record<string, string[]> = {},
): string {
  const summary: BundleSummary = { format: BUNDLE_FORMAT, version: 1, ...facts, key_id: key.key_id };
  const { head, count, first_seq, last_seq, tree, key_id } = summary;
  const signature = key.sign("bundle", summary as unknown as Json);
  const end = { head, count, first_seq, last_seq, tree, proofs, key_id, public_key: key.pem, signature };
  return `\n],${canonical(end as unknown as Json).slice(1)}\n`;
}
