/**
 * Signed bundles: the entire ledger, or one run with an inclusion proof for each record. A bundle has one record per
 * line. Every record is read back and its hash checked first, so a record that fails verification is never signed.
 */

import { nextEventLoopTurn, runInSlices } from "../../child-process/event-loop-slices.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { SvcError } from "../../kernel/errors.ts";
import { toCanonicalJsonInSteps } from "../../kernel/json/canonical.ts";
import { asJson } from "../../kernel/json/json.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { type RecordFacts, readRecordLine } from "../../ledger/read-record.ts";
import { unconfinedStore } from "../../store/tenant-store.ts";
import { ChunkVerifier, toLineChunk } from "../chain/chunk.ts";
import { LedgerJoin } from "../chain/join.ts";
import { newRunSeed } from "../chain/run-numbering.ts";
import {
  BLOCK_RECORDS,
  corruptLedgerError,
  type LedgerSnapshot,
  type LedgerTree,
  treeOf,
} from "../ledger-tree.ts";
import type { SigningKey } from "../signing.ts";
import {
  type CarriedCheckpoint,
  carriedCheckpoints,
  loadCosignatures,
} from "../witness/cosignature-store.ts";
import { LedgerProofs } from "../witness/proofs.ts";
import { type CarriedSignature, NamedSignatures } from "./carried-signatures.ts";

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

type Proofs = Record<string, string[]>;
const PAGE = 1_024;

/** Text of a whole-ledger bundle, up to the ledger's head at the start of the export. */
export async function* ledgerBundle(
  store: StateStore,
  key: SigningKey,
  exported_ms: number,
): AsyncGenerator<string> {
  const kept = await loadCosignatures(store);
  const { records, hash } = await store.head();
  const seed = newRunSeed();
  const tree = { cuts: [], largest: Number.POSITIVE_INFINITY };
  const checker = new ChunkVerifier({ seed, tree, in_bundle: false });
  const join = new LedgerJoin({ seed, tree: true });
  const named = new NamedSignatures();
  let text = opening("ledger", null, exported_ms);
  while (join.records < records) {
    const lines = await store.records({ from: join.records, to: records - 1, limit: PAGE });
    if (lines.length === 0)
      throw corruptLedgerError(join.records, "it is not there, though the store counts it");
    text += `${join.records === 0 ? "\n" : ",\n"}${lines.join(",\n")}`;
    if (!join.add(checker.check(toLineChunk(`${lines.join("\n")}\n`))))
      throw corruptLedgerError(join.bad!.seq, join.bad!.problem);
    for (const line of lines) named.add(line);
    yield text;
    text = "";
  }
  if (join.head !== hash)
    throw corruptLedgerError(records - 1, "its hash is not the head that the store keeps");
  const facts = {
    kind: "ledger" as const,
    run_id: null,
    exported_ms,
    head: hash,
    count: records,
    first_seq: records === 0 ? null : 0,
    last_seq: records === 0 ? null : records - 1,
    tree: { size: records, root: join.root()! },
  };
  // Without witnesses the tree is not read a second time.
  const checkpoints =
    Object.keys(kept).length === 0
      ? []
      : await carriedCheckpoints(kept, await LedgerProofs.of(store), records, key);
  yield text + (await runInSlices(closing(key, facts, { checkpoints, signatures: await named.load(store) })));
}

/** Text of a single-run bundle, in pieces. Throws if neither the run nor a record of it exists. */
export async function runBundle(
  store: StateStore,
  run_id: string,
  key: SigningKey,
  exported_ms: number,
): Promise<string[]> {
  // Read the run first: its records so far must be in the ledger afterwards.
  const run = await store.get("runs", run_id);
  const known = run?.next_run_seq ?? 0;
  const kept = await loadCosignatures(store);
  // A proof needs the hashes of all tenants' records. It reveals nothing but hashes of them.
  const tree = treeOf(unconfinedStore(store));
  const snapshot = await tree.snapshot();
  const trail = await readTrail(store, run_id, snapshot.records);
  if (trail.length === 0 && run === undefined) throw new SvcError("not_found", `unknown run ${run_id}`);
  if (trail.length < known) {
    throw new SvcError(
      "corrupt",
      `run ${run_id} has ${known} records, but only ${trail.length} were found; nothing was signed`,
    );
  }
  const proofs = await proveTrail(tree, snapshot, trail);
  const size = snapshot.records;
  const checkpoints = await carriedCheckpoints(kept, new LedgerProofs(tree, snapshot), size, key);
  const named = new NamedSignatures();
  for (const { line } of trail) named.add(line);
  const signatures = await named.load(store);
  const pieces = [opening("run", run_id, exported_ms)];
  for (let from = 0; from < trail.length; from += PAGE) {
    const lines = trail.slice(from, from + PAGE).map(({ line }) => line);
    pieces.push(`${from === 0 ? "\n" : ",\n"}${lines.join(",\n")}`);
  }
  const facts = {
    kind: "run" as const,
    run_id,
    exported_ms,
    head: snapshot.head,
    count: trail.length,
    first_seq: trail[0]?.seq ?? null,
    last_seq: trail.at(-1)?.seq ?? null,
    tree: snapshot.tree,
  };
  pieces.push(await runInSlices(closing(key, facts, { proofs, checkpoints, signatures })));
  return pieces;
}

interface Entry {
  seq: number;
  line: string;
}

/** The run's records up to a ledger size, numbered without a gap. */
async function readTrail(store: StateStore, run_id: string, size: number): Promise<Entry[]> {
  const trail: Entry[] = [];
  let from = 0;
  while (from < size) {
    const lines = await store.records({ run_id, from, to: size - 1, limit: PAGE });
    await nextEventLoopTurn();
    for (const line of lines) {
      const facts = readRecordLine(line);
      if (typeof facts === "string") throw corruptLedgerError(from, facts);
      if (!isNext(facts, run_id, trail))
        throw corruptLedgerError(facts.seq, "it is not the next record of its run");
      trail.push({ seq: facts.seq, line });
      from = facts.seq + 1;
    }
    if (lines.length < PAGE) break;
  }
  return trail;
}

function isNext(facts: RecordFacts, run_id: string, trail: readonly Entry[]): boolean {
  return facts.run_id === run_id && facts.run_seq === trail.length && facts.seq > (trail.at(-1)?.seq ?? -1);
}

/** Inclusion proof for each record, from its block as currently stored. */
async function proveTrail(
  tree: LedgerTree,
  snapshot: LedgerSnapshot,
  trail: readonly Entry[],
): Promise<Proofs> {
  const proofs: Proofs = {};
  let i = 0;
  while (i < trail.length) {
    const block = Math.floor(trail[i]!.seq / BLOCK_RECORDS);
    const { lines, leaves } = await tree.readBlock(snapshot, block);
    await nextEventLoopTurn();
    for (; i < trail.length && Math.floor(trail[i]!.seq / BLOCK_RECORDS) === block; i++) {
      const { seq, line } = trail[i]!;
      if (lines[seq - block * BLOCK_RECORDS] !== line)
        throw corruptLedgerError(seq, "two readings of it differ");
      proofs[seq] = tree.proof(snapshot, seq, leaves);
    }
  }
  return proofs;
}

function opening(kind: string, run_id: string | null, exported_ms: number): string {
  const start = { format: BUNDLE_FORMAT, version: 1, kind, run_id, exported_ms };
  return `${JSON.stringify(start).slice(0, -1)},"records":[`;
}

interface BundleEvidence {
  proofs?: Proofs;
  checkpoints: CarriedCheckpoint[];
  signatures: CarriedSignature[];
}

function* closing(
  key: SigningKey,
  facts: Omit<BundleSummary, "format" | "version" | "key_id">,
  { proofs = {}, checkpoints, signatures }: BundleEvidence,
): PausableWork<string> {
  const summary: BundleSummary = { format: BUNDLE_FORMAT, version: 1, ...facts, key_id: key.key_id };
  const { head, count, first_seq, last_seq, tree, key_id } = summary;
  const signature = key.sign("bundle", asJson(summary));
  const end = {
    ...(checkpoints.length === 0 ? {} : { checkpoints }),
    ...(signatures.length === 0 ? {} : { signatures }),
    ...{ head, count, first_seq, last_seq, tree, proofs, key_id, public_key: key.pem, signature },
  };
  return `\n],${(yield* toCanonicalJsonInSteps(asJson(end))).slice(1)}\n`;
}
