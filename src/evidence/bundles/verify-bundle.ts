/**
 * Verifies a bundle without any other data, preferably with a trusted key: every record's hash, the chain or the
 * inclusion proofs, the counts, and the signature over the results. A claim of the bundle is never trusted if it can be
 * computed.
 */

import { hash as digest } from "node:crypto";
import type { ApproversDoc } from "../../auth/approvers.ts";
import { invalidError } from "../../kernel/errors.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { asJson } from "../../kernel/json/json.ts";
import { rootFromProof } from "../../ledger/merkle-tree.ts";
import { ChunkVerifier, toLineChunk } from "../chain/chunk.ts";
import { LedgerJoin } from "../chain/join.ts";
import { LineFile } from "../chain/line-file.ts";
import { newRunSeed } from "../chain/run-numbering.ts";
import type { TrustedKeys } from "../key-files.ts";
import { checkSignature, type KeyTrust } from "../signature-check.ts";
import { checkFileRegion } from "../verify-ledger.ts";
import {
  checkWitnesses,
  NO_WITNESS_REQUIREMENT,
  uncoveredProblem,
  type WitnessReport,
  type WitnessRequirement,
} from "../witness/requirements.ts";
import {
  type BundleFile,
  type BundleReading,
  MAX_WHOLE_BYTES,
  readBundleInMemory,
  readBundleRegion,
} from "./bundle-file.ts";
import { type BundleMembers, readMembers, summaryOf } from "./bundle-members.ts";
import { checkCarriedSignatures, type SignatureReport } from "./check-carried.ts";
import { type RunTrail, readTrail, recordTexts } from "./run-trail.ts";

export interface BundleReport {
  kind: "ledger" | "run";
  run_id: string | null;
  exported_ms: number;
  count: number;
  first_seq: number | null;
  last_seq: number | null;
  /** Hash of its last record; 64 zeros if it has none. */
  last_hash: string;
  tree_size: number;
  head: string;
  /** Whether the bundle contains the ledger's last record, which links head and tree. */
  head_tied: boolean;
  key_id: string;
  trust: Exclude<KeyTrust, "unchecked">;
  /** Witnesses' cosignatures in the bundle, and the coverage by those that the caller demanded. */
  witnesses: WitnessReport;
  /** Signatures of approvals in the bundle. */
  signatures: SignatureReport;
}

/** What the caller demands in addition to the bundle's own claims. */
export interface BundleDemand extends WitnessRequirement {
  /** The approvers that the caller knows; null if only the carried keys are known. */
  approvers?: ApproversDoc | null;
}
const NO_DEMAND: BundleDemand = NO_WITNESS_REQUIREMENT;

type BundleVerdict = { ok: true; report: BundleReport } | { ok: false; problem: string };

/** Throws if the file cannot be a bundle. An invalid bundle is a verdict, not an error. */
export async function verifyBundle(
  path: string,
  trusted: TrustedKeys,
  demand: BundleDemand = NO_DEMAND,
): Promise<BundleVerdict> {
  const file = new LineFile(path);
  try {
    if (file.size === 0) throw invalidError(`${path}: is empty: there is nothing to verify`);
    const laidOut = readBundleRegion(file);
    const first = laidOut === null ? null : await judge(file, laidOut, trusted, demand);
    // Unreadable lines may be records in another layout.
    const isOther = first === null || (first.unreadable && file.size <= MAX_WHOLE_BYTES);
    return (isOther ? await judge(file, readBundleInMemory(file), trusted, demand) : first).verdict;
  } finally {
    file.close();
  }
}

interface Judged {
  verdict: BundleVerdict;
  unreadable: boolean;
}

/** Facts of the verified records, or a problem. */
interface RecordsFound {
  count: number;
  first_seq: number | null;
  last_seq: number | null;
  last_hash: string;
  problem: string | undefined;
  /** Whether a line could not be parsed. */
  unreadable: boolean;
}

async function judge(
  file: LineFile,
  bundle: BundleReading,
  trusted: TrustedKeys,
  demand: BundleDemand,
): Promise<Judged> {
  const no = (problem: string, unreadable = false): Judged => ({
    verdict: { ok: false, problem },
    unreadable,
  });
  if ("problem" in bundle) return no(bundle.problem);
  const members = readMembers(bundle.members);
  if (typeof members === "string") return no(members);
  const found = await (members.kind === "ledger" ? checkLedger : checkRun)(file, bundle, members);
  if (found.problem !== undefined) return no(found.problem, found.unreadable);
  const { first_seq, last_seq, last_hash } = found;
  const { key_id, public_key, signature } = members;
  const summary = asJson(summaryOf(members, first_seq, last_seq));
  const signed = checkSignature({ domain: "bundle", summary, key_id, public_key, signature }, trusted);
  if ("problem" in signed) return no(signed.problem);
  if (signed.trust === "unchecked") {
    return no("its signature cannot be checked: it carries no public key; give one with --pub <file>");
  }
  const witnesses = checkWitnesses(members, signed.key, demand);
  if (typeof witnesses === "string") return no(witnesses);
  const isDemanded = demand.witnesses.length > 0;
  const beyond = isDemanded && uncoveredProblem(found, witnesses.covered, () => recordTexts(file, bundle));
  if (typeof beyond === "string") return no(beyond);
  const signatures = await checkCarriedSignatures(
    members.signatures,
    (wanted) => recordTexts(file, bundle, wanted),
    demand.approvers ?? null,
  );
  if (typeof signatures === "string") return no(signatures);
  const { kind, run_id, exported_ms, count, head, tree } = members;
  const head_tied = last_seq !== null && last_seq === tree.size - 1;
  const facts = {
    kind,
    run_id,
    exported_ms,
    count,
    first_seq,
    last_seq,
    last_hash,
    tree_size: tree.size,
    head,
    head_tied,
  };
  return {
    verdict: {
      ok: true,
      report: { ...facts, key_id: key_id as string, trust: signed.trust, witnesses, signatures },
    },
    unreadable: false,
  };
}

function countProblem(
  members: BundleMembers,
  found: Pick<RecordsFound, "count" | "first_seq" | "last_seq">,
): string | undefined {
  if (members.count !== found.count)
    return `it says that it holds ${members.count} records, and holds ${found.count}`;
  for (const name of ["first_seq", "last_seq"] as const) {
    if (members[name] !== undefined && members[name] !== found[name])
      return `its ${name} is not that of its records`;
  }
  return undefined;
}

/** Verifies the complete chain up to the head, and the tree over all records. */
async function checkLedger(
  file: LineFile,
  bundle: BundleFile,
  members: BundleMembers,
): Promise<RecordsFound> {
  const { records, head, root, first_bad, unreadable } =
    "region" in bundle
      ? await checkFileRegion(file.path, bundle.region, { tree: true }, true)
      : checkLines(bundle.lines);
  const last_seq = records === 0 ? null : records - 1;
  const found = { count: records, first_seq: records === 0 ? null : 0, last_seq };
  const problem =
    first_bad === null
      ? (countProblem(members, found) ??
        ledgerProblem(members, records, head, root) ??
        leavesProblem(file, bundle, members))
      : `record ${first_bad.seq}: ${first_bad.problem}`;
  return { ...found, last_hash: head, problem, unreadable };
}

function ledgerProblem(
  { tree, ...members }: BundleMembers,
  records: number,
  head: string,
  root: string | null,
): string | undefined {
  if (members.head !== head) return "its head is not the hash of its last record";
  if (tree.size !== records) return `its tree has ${tree.size} leaves, and it holds ${records} records`;
  return tree.root === root ? undefined : "its tree root is not that of its records";
}

function checkLines(lines: readonly string[]) {
  const seed = newRunSeed();
  const checker = new ChunkVerifier({
    seed,
    tree: { cuts: [], largest: Number.POSITIVE_INFINITY },
    in_bundle: false,
  });
  const join = new LedgerJoin({ seed, tree: true });
  if (lines.length > 0) join.add(checker.check(toLineChunk(lines.map((line) => `${line}\n`).join(""))));
  const { records, head, bad } = join;
  return { records, head, root: join.root(), first_bad: bad, unreadable: false };
}

/** A ledger bundle needs no proofs, but existing ones must be valid. */
function leavesProblem(file: LineFile, bundle: BundleFile, members: BundleMembers): string | undefined {
  const wanted = new Set(Object.keys(members.proofs));
  if (wanted.size === 0) return undefined;
  let seq = 0;
  for (const text of recordTexts(file, bundle)) {
    if (wanted.delete(String(seq))) {
      const { hash: _, ...body } = JSON.parse(text) as { [name: string]: JsonValue };
      const problem = proofProblem(members, {
        seq,
        leaf: digest("sha256", `\0${toCanonicalJson(body)}`, "hex"),
      });
      if (problem !== undefined) return problem;
    }
    seq++;
  }
  return wanted.size === 0 ? undefined : SURPLUS;
}

const SURPLUS = "it has an inclusion proof for a record that it does not hold";

/** Verifies that each record is in the signed tree and that the run's numbering has no gap. */
async function checkRun(file: LineFile, bundle: BundleFile, members: BundleMembers): Promise<RecordsFound> {
  const trail = readTrail(recordTexts(file, bundle), members.run_id!);
  const { entries, last_hash, unreadable } = trail;
  const found = {
    count: entries.length,
    first_seq: entries[0]?.seq ?? null,
    last_seq: entries.at(-1)?.seq ?? null,
  };
  return {
    ...found,
    last_hash,
    problem: trail.problem ?? countProblem(members, found) ?? runProblem(members, trail),
    unreadable,
  };
}

function runProblem(members: BundleMembers, { entries, last_hash }: RunTrail): string | undefined {
  for (const entry of entries) {
    const problem = proofProblem(members, entry);
    if (problem !== undefined) return problem;
  }
  if (Object.keys(members.proofs).length !== entries.length) return SURPLUS;
  const isTied = entries.at(-1)?.seq === members.tree.size - 1;
  return isTied && last_hash !== members.head
    ? "its head is not the hash of the ledger's last record, which it holds"
    : undefined;
}

function proofProblem(
  { tree, proofs }: BundleMembers,
  { seq, leaf }: { seq: number; leaf: string },
): string | undefined {
  const proof = Object.hasOwn(proofs, String(seq)) ? proofs[seq] : undefined;
  if (proof === undefined) return `record ${seq}: it has no inclusion proof`;
  if (seq >= tree.size) return `record ${seq}: it lies beyond the signed tree of ${tree.size} leaves`;
  if (rootFromProof(leaf, seq, tree.size, proof) === tree.root) return undefined;
  return `record ${seq}: its inclusion proof does not lead to the signed tree root`;
}
