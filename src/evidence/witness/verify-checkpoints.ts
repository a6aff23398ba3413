/**
 * Verifies a ledger against checkpoints stored by different people. If a server showed one of them a different history,
 * it signed two checkpoints, and no ledger continues both.
 */
import type { TrustedKeys } from "../key-files.ts";
import { logSignature, parseCheckpoint, type SignedTreeHead, type TreeHead } from "./checkpoint.ts";
import { NOTE_SIGNATURE, type VerifierKey } from "./note.ts";

export interface CheckpointFile {
  /** Name given by the user. */
  name: string;
  text: string;
}

export interface CheckpointFinding {
  file: string;
  origin: string | null;
  size: number | null;
  trust: "trusted" | "unchecked";
  /** Null if the checkpoint matches. */
  problem: string | null;
}

/** Resolves to the reason why the ledger does not continue the checkpoint, or undefined. */
export type CheckConsistency = (head: TreeHead) => Promise<string | undefined>;

interface Read {
  name: string;
  checkpoint: SignedTreeHead | string;
}

export async function verifyCheckpoints(
  files: readonly CheckpointFile[],
  trusted: TrustedKeys,
  holdAgainst: CheckConsistency,
): Promise<CheckpointFinding[]> {
  const read = readCheckpoints(files);
  const findings: CheckpointFinding[] = [];
  for (const { name: file, checkpoint } of read) {
    if (typeof checkpoint === "string") {
      findings.push({ file, origin: null, size: null, trust: "unchecked", problem: checkpoint });
      continue;
    }
    const { origin, size } = checkpoint;
    const problem =
      signatureProblem(checkpoint, trusted) ??
      forkProblem(checkpoint, file, read) ??
      (await holdAgainst(checkpoint));
    const trust = trusted.size > 0 ? ("trusted" as const) : ("unchecked" as const);
    findings.push({ file, origin, size, trust, problem: problem ?? null });
  }
  return findings;
}

export function readCheckpoints(files: readonly CheckpointFile[]): Read[] {
  return files.map(({ name, text }) => ({ name, checkpoint: parseCheckpoint(text) }));
}

function signatureProblem(checkpoint: SignedTreeHead, trusted: TrustedKeys): string | undefined {
  if (trusted.size === 0) return undefined;
  const keys = [...trusted.values()].map((key): VerifierKey => ({ name: null, type: NOTE_SIGNATURE, key }));
  const found = logSignature(checkpoint, keys);
  if (found === "good") return undefined;
  return found === "bad"
    ? "its signature does not match: what was signed is not what is here"
    : "it is not signed with a trusted key";
}

function forkProblem(checkpoint: SignedTreeHead, name: string, all: readonly Read[]): string | undefined {
  const other = all.find(
    ({ name: of, checkpoint: one }) =>
      of !== name &&
      typeof one !== "string" &&
      one.origin === checkpoint.origin &&
      one.size === checkpoint.size &&
      one.root !== checkpoint.root,
  );
  return other === undefined
    ? undefined
    : `two histories were shown: ${other.name} has another root for the same ${checkpoint.size} records`;
}

export function truncatedText(size: number, records: number): string {
  return `the ledger has ${records} records and the checkpoint is over ${size}: it has been truncated, or this is another history`;
}

export function rewrittenText(size: number): string {
  return `two histories were shown: the first ${size} records are not those that this checkpoint was signed over`;
}
