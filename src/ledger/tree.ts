/**
 * The RFC 6962 Merkle tree beside the chain: built from the bytes that record hashes cover, never stored
 * as truth. One pass gives the root at any size and the inclusion proofs of chosen leaves, in memory that
 * grows with the logarithm of the ledger.
 */
import { createHash } from "node:crypto";
import { sha256 } from "../kernel/hash.ts";

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);

export const EMPTY_ROOT = sha256("").toString("hex");

/** The hash of a leaf: what a record's own hash covers, with the leaf prefix. */
export function leafHash(body: string): Buffer {
  return createHash("sha256").update(LEAF).update(body, "utf8").digest();
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash("sha256").update(NODE).update(left).update(right).digest();
}

interface Peak {
  size: number;
  hash: Buffer;
  /** Chosen leaves below this peak, whose proofs grow when it is joined. */
  chosen: number[];
}

export class TreeBuilder {
  private readonly peaks: Peak[] = [];
  private readonly proofs = new Map<number, string[]>();
  size = 0;

  /** Adds a leaf. A chosen one gets an inclusion proof. */
  add(hash: Buffer, choose = false): void {
    const index = this.size++;
    if (choose) this.proofs.set(index, []);
    let peak: Peak = { size: 1, hash, chosen: choose ? [index] : [] };
    for (
      let left = this.peaks.at(-1);
      left !== undefined && left.size === peak.size;
      left = this.peaks.at(-1)
    ) {
      this.peaks.pop();
      peak = this.join(left, peak);
    }
    this.peaks.push(peak);
  }

  /** The root over everything added so far. */
  root(): string {
    if (this.peaks.length === 0) return EMPTY_ROOT;
    let hash = this.peaks.at(-1)!.hash;
    for (let i = this.peaks.length - 2; i >= 0; i--) hash = nodeHash(this.peaks[i]!.hash, hash);
    return hash.toString("hex");
  }

  /** The root and the finished proofs. Nothing may be added afterwards. */
  finish(): { size: number; root: string; proofs: Map<number, string[]> } {
    const root = this.root();
    let right = this.peaks.pop();
    while (right !== undefined) {
      const left = this.peaks.pop();
      if (left === undefined) break;
      right = this.join(left, right);
    }
    return { size: this.size, root, proofs: this.proofs };
  }

  private join(left: Peak, right: Peak): Peak {
    for (const index of left.chosen) this.proofs.get(index)!.push(right.hash.toString("hex"));
    for (const index of right.chosen) this.proofs.get(index)!.push(left.hash.toString("hex"));
    const chosen = left.chosen.length === 0 ? right.chosen : left.chosen.concat(right.chosen);
    return { size: left.size + right.size, hash: nodeHash(left.hash, right.hash), chosen };
  }
}

/** The root that an inclusion proof leads to, or undefined where the proof has the wrong shape. */
export function rootFromProof(
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly string[],
): string | undefined {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size)
    return undefined;
  let fn = index;
  let sn = size - 1;
  let hash: Buffer = Buffer.from(leaf);
  for (const hex of proof) {
    if (sn === 0 || !/^[0-9a-f]{64}$/.test(hex)) return undefined;
    const sibling = Buffer.from(hex, "hex");
    if (fn % 2 === 1 || fn === sn) {
      hash = nodeHash(sibling, hash);
      while (fn % 2 === 0 && fn !== 0) {
        fn = Math.floor(fn / 2);
        sn = Math.floor(sn / 2);
      }
    } else {
      hash = nodeHash(hash, sibling);
    }
    fn = Math.floor(fn / 2);
    sn = Math.floor(sn / 2);
  }
  return sn === 0 ? hash.toString("hex") : undefined;
}

/**
 * Whether a proof shows that the tree of `first` leaves is the beginning of the tree of `second` (the walk of
 * RFC 9162, 2.1.4.2, over the proofs of RFC 6962, 2.1.2). It must use the whole proof and arrive exactly then.
 */
export function isConsistent(
  first: { size: number; root: string },
  second: { size: number; root: string },
  proof: readonly string[],
): boolean {
  if (!Number.isSafeInteger(first.size) || !Number.isSafeInteger(second.size)) return false;
  if (first.size < 0 || first.size > second.size) return false;
  if (first.size === second.size) return proof.length === 0 && first.root === second.root;
  if (first.size === 0) return proof.length === 0 && first.root === EMPTY_ROOT;
  let fn = first.size - 1;
  let sn = second.size - 1;
  const up = () => {
    fn = Math.floor(fn / 2);
    sn = Math.floor(sn / 2);
  };
  while (fn % 2 === 1) up();
  // A full subtree is its own first node, and is left out of the proof.
  const path = fn === 0 ? [first.root, ...proof] : proof;
  if (path.length === 0) return false;
  const nodes = path.map((hex) => Buffer.from(hex, "hex"));
  let fr: Buffer = nodes[0]!;
  let sr: Buffer = nodes[0]!;
  for (const node of nodes.slice(1)) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      fr = nodeHash(node, fr);
      sr = nodeHash(node, sr);
      while (fn % 2 === 0 && fn !== 0) up();
    } else {
      sr = nodeHash(sr, node);
    }
    up();
  }
  return sn === 0 && fr.toString("hex") === first.root && sr.toString("hex") === second.root;
}
