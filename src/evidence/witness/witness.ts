/**
 * A witness for other logs (C2SP tlog-witness). It cosigns a checkpoint only if that continues the last one it
 * cosigned, and stores the checkpoint before it responds.
 */
import { EMPTY_ROOT, isConsistent } from "../../ledger/merkle-tree.ts";
import { type SigningKey, strictBase64 } from "../signing.ts";
import {
  cosignatureLine,
  cosignatureOf,
  logSignature,
  parseCheckpoint,
  type SignedTreeHead,
} from "./checkpoint.ts";
import { COSIGNATURE_TYPE, MAX_NOTE_CHARS, type VerifierKey, verifierKeyText } from "./note.ts";
import type { StoredCheckpoint, WitnessState } from "./state.ts";

interface WitnessAnswer {
  status: 200 | 400 | 403 | 404 | 409 | 422;
  type: string;
  text: string;
}

const TEXT = "text/plain; charset=utf-8";
const MAX_PROOF_LINES = 63;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const no = (status: WitnessAnswer["status"], problem: string): WitnessAnswer => ({
  status,
  type: TEXT,
  text: `${problem}\n`,
});

interface Submission {
  old: number;
  proof: string[];
  checkpoint: SignedTreeHead;
}

interface WitnessParts {
  name: string;
  key: SigningKey;
  /** Keys of each log, by its origin. */
  logs: ReadonlyMap<string, readonly VerifierKey[]>;
  state: WitnessState;
  now(): number;
}

export class LogWitness {
  private readonly parts: WitnessParts;
  private readonly own: VerifierKey & { name: string };

  constructor(parts: WitnessParts) {
    this.parts = parts;
    this.own = { name: parts.name, type: COSIGNATURE_TYPE, key: parts.key };
  }

  /** The key that verifiers of its cosignatures need. */
  get verifierKey(): string {
    return verifierKeyText(this.own);
  }

  addCheckpoint(body: Uint8Array): WitnessAnswer {
    const submission = readSubmission(body);
    if (typeof submission === "string") return no(400, submission);
    const { checkpoint, old } = submission;
    const keys = this.parts.logs.get(checkpoint.origin);
    if (keys === undefined) return no(404, "this witness does not know the checkpoint's origin");
    if (logSignature(checkpoint, keys) !== "good")
      return no(403, "the checkpoint is not signed with a key that this witness knows for its origin");
    if (old > checkpoint.size) return no(400, "the old size is larger than the checkpoint's");
    let answer: WitnessAnswer | undefined;
    this.parts.state.replace(checkpoint.origin, (last) => {
      const judged = this.judge(submission, last);
      if ("status" in judged) {
        answer = judged;
        return null;
      }
      answer = { status: 200, type: TEXT, text: judged.line };
      return judged.remembered;
    });
    return answer!;
  }

  /** The last cosigned checkpoint of a log, by the SHA-256 of its origin in hex. */
  checkpointOf(originHash: string): string | undefined {
    return this.parts.state.noteOf(originHash);
  }

  private judge(
    { old, proof, checkpoint }: Submission,
    last: StoredCheckpoint | undefined,
  ): WitnessAnswer | { line: string; remembered: StoredCheckpoint } {
    const { size, root, note } = checkpoint;
    const known = last?.size ?? 0;
    if (this.wasAheadOf(checkpoint, last))
      return no(
        422,
        "this witness has cosigned more than its state contains: the state was restored from an older copy, and it signs nothing for this log",
      );
    const standsAt = { status: 409, type: "text/x.tlog.size", text: `${known}\n` } as const;
    if (old !== known) return standsAt;
    // The empty tree is a prefix of every tree, and its root is fixed.
    const before = last ?? { size: 0, root: EMPTY_ROOT };
    if (size === 0 && root !== EMPTY_ROOT) return no(422, "the checkpoint of an empty tree has another root");
    // Trees of the same size need no proof: they are equal, or there are two histories.
    if (size === before.size && root !== before.root && proof.length === 0) return standsAt;
    if (!isConsistent(before, { size, root }, proof))
      return no(422, "the checkpoint does not continue the one that this witness cosigned before");
    const { name, key, now } = this.parts;
    const line = cosignatureLine(note.body, name, key, Math.floor(now() / 1_000));
    const signed = note.signatures.filter(({ name: by }) => by !== name).map((one) => one.line);
    return { line, remembered: { size, root, note: `${note.body}\n${signed.join("")}${line}` } };
  }

  /**
   * Whether the checkpoint has a cosignature of this witness that its state does not contain. Then its state is
   * outdated, for example restored from an old backup.
   */
  private wasAheadOf({ size, root, note }: SignedTreeHead, last: StoredCheckpoint | undefined): boolean {
    const own = cosignatureOf(note.body, note.signatures, this.own);
    if (own === null || own === "bad") return false;
    return size > (last?.size ?? 0) || (size === last?.size && root !== last.root);
  }
}

/** Parses `old <size>`, proof lines, an empty line and the checkpoint; or returns the problem. */
function readSubmission(body: Uint8Array): Submission | string {
  if (body.length > 2 * MAX_NOTE_CHARS) return "the request is too long";
  let text: string;
  try {
    text = UTF8.decode(body);
  } catch {
    return "the request is not UTF-8";
  }
  const end = text.indexOf("\n\n");
  if (end < 0) return "the request has no empty line before the checkpoint";
  const [first = "", ...coded] = text.slice(0, end).split("\n");
  const old = /^old (0|[1-9]\d{0,15})$/.exec(first)?.[1];
  if (old === undefined || !Number.isSafeInteger(Number(old))) return "the first line is not: old <size>";
  if (coded.length > MAX_PROOF_LINES) return `there are more than ${MAX_PROOF_LINES} proof lines`;
  const proof = coded.map((line) => strictBase64(line));
  if (!proof.every((hash) => hash?.length === 32)) return "a proof line is not a hash in base64";
  const checkpoint = parseCheckpoint(text.slice(end + 2));
  if (typeof checkpoint === "string") return checkpoint;
  return { old: Number(old), proof: proof.map((hash) => hash!.toString("hex")), checkpoint };
}
