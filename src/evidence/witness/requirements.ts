/**
 * Checks the checkpoints of a bundle. Each must be signed with the bundle's key and be consistent with the bundle's
 * tree. If the caller demands witnesses, enough of them must have seen all records: cosignatures on a checkpoint from
 * before a fork are valid, but do not cover the forked records.
 */
import type { JsonObject } from "../../kernel/json/json.ts";
import { isConsistent } from "../../ledger/merkle-tree.ts";
import type { BundleMembers } from "../bundles/bundle-members.ts";
import type { PublicKey } from "../signing.ts";
import { cosignatureOf, logKey, logSignature, parseCheckpoint, type SignedTreeHead } from "./checkpoint.ts";
import type { VerifierKey } from "./note.ts";

export interface WitnessRequirement {
  witnesses: readonly VerifierKey[];
  /** How many of them must have cosigned. */
  quorum: number;
}

export const NO_WITNESS_REQUIREMENT: WitnessRequirement = { witnesses: [], quorum: 0 };

export interface WitnessReport {
  /** Number of cosigned checkpoints in the bundle. */
  checkpoints: number;
  /** Demanded witnesses that cosigned, each with its largest size and the time. */
  by: { name: string; key_id: string; size: number; seconds: number }[];
  /** Number of records, from the first, that enough of them have seen. */
  covered: number;
}

/** The report, or the reason why the checkpoints are invalid or do not meet the demand. */
export function checkWitnesses(
  { tree, checkpoints }: BundleMembers,
  key: PublicKey,
  { witnesses, quorum }: WitnessRequirement,
): WitnessReport | string {
  const best = new Map<string, WitnessReport["by"][number]>();
  for (const { note, consistency } of checkpoints) {
    const checkpoint = parseCheckpoint(note);
    if (typeof checkpoint === "string") return `a checkpoint in it cannot be read: ${checkpoint}`;
    const problem = checkpointProblem(checkpoint, tree, consistency, key);
    if (problem !== undefined) return problem;
    const { body, signatures } = checkpoint.note;
    for (const witness of witnesses) {
      const found = cosignatureOf(body, signatures, witness);
      if (found === "bad") return "a witness's cosignature in it does not match its checkpoint";
      const { size } = checkpoint;
      if (found !== null && size >= (best.get(found.key_id)?.size ?? 0))
        best.set(found.key_id, { name: found.name, key_id: found.key_id, size, seconds: found.seconds });
    }
  }
  const by = [...best.values()].sort((a, b) => b.size - a.size);
  if (by.length < quorum) {
    return `${quorum} of the ${witnesses.length} witnesses given must have cosigned it, and ${by.length} did`;
  }
  return { checkpoints: checkpoints.length, by, covered: quorum === 0 ? 0 : by[quorum - 1]!.size };
}

function checkpointProblem(
  checkpoint: SignedTreeHead,
  tree: { size: number; root: string },
  consistency: readonly string[],
  key: PublicKey,
): string | undefined {
  if (logSignature(checkpoint, [logKey(checkpoint.origin, key)]) !== "good")
    return "a checkpoint in it is not signed with its key";
  return isConsistent(checkpoint, tree, consistency)
    ? undefined
    : `its tree does not continue the checkpoint of ${checkpoint.size} records that it carries`;
}

/** Why the records are not covered, or undefined. The `witnessed` record itself always follows the covered ones. */
export function uncoveredProblem(
  { count, last_seq }: { count: number; last_seq: number | null },
  covered: number,
  texts: () => Iterable<string>,
): string | undefined {
  if (last_seq === null || last_seq < covered) return undefined;
  let at = 0;
  for (const text of texts()) {
    // Records ascend, so none before this index can be beyond the covered ones.
    if (last_seq - (count - 1 - at++) < covered) continue;
    const { seq, event } = JSON.parse(text) as JsonObject & { seq: number };
    if (seq >= covered && event !== "witnessed")
      return `record ${seq} and what follows were not seen by enough witnesses: they cosigned the first ${covered} records`;
  }
  return undefined;
}
