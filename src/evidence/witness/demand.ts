/**
 * What a bundle's checkpoints show: each is signed with the bundle's key and leads to the bundle's tree, and so do
 * the cosignatures on it. Whoever demands witnesses is shown nothing that enough of them have not seen: a history
 * that was forked behind the last cosigned checkpoint carries good cosignatures, but they do not cover it.
 */
import type { JsonObject } from "../../kernel/json.ts";
import { isConsistent } from "../../ledger/tree.ts";
import type { Members } from "../bundle-members.ts";
import type { PublicKey } from "../signing.ts";
import { cosignatureOf, logKey, logSignature, parseCheckpoint, type SignedTreeHead } from "./checkpoint.ts";
import type { VerifierKey } from "./note.ts";

export interface WitnessDemand {
  witnesses: readonly VerifierKey[];
  /** How many of them must have cosigned. */
  quorum: number;
}

export const NO_DEMAND: WitnessDemand = { witnesses: [], quorum: 0 };

export interface WitnessReport {
  /** How many cosigned checkpoints the bundle carries. */
  checkpoints: number;
  /** The demanded witnesses that cosigned, each with the most records it cosigned and when. */
  by: { name: string; key_id: string; size: number; seconds: number }[];
  /** How many records, from the first, enough of them have seen. */
  covered: number;
}

/** The report, or why the checkpoints do not hold or the demand is not met. */
export function checkWitnesses(
  { tree, checkpoints }: Members,
  key: PublicKey,
  { witnesses, quorum }: WitnessDemand,
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

/** Why the records are not covered, or undefined. The record that says that they were witnessed comes behind. */
export function unwitnessed(
  { count, last_seq }: { count: number; last_seq: number | null },
  covered: number,
  texts: () => Iterable<string>,
): string | undefined {
  if (last_seq === null || last_seq < covered) return undefined;
  let at = 0;
  for (const text of texts()) {
    // Records ascend, so none before this place can lie as far behind.
    if (last_seq - (count - 1 - at++) < covered) continue;
    const { seq, event } = JSON.parse(text) as JsonObject & { seq: number };
    if (seq >= covered && event !== "witnessed")
      return `record ${seq} and what follows were not seen by enough witnesses: they cosigned the first ${covered} records`;
  }
  return undefined;
}
