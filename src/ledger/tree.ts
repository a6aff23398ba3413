/**
 * The RFC 6962 Merkle tree beside the chain: how nodes are hashed and proofs are followed. Its leaves are the bytes that
 * record hashes cover; it is never stored as truth. `src/evidence/chain` builds it from parts.
 */
import { hash as digest } from "node:crypto";
import { sha256Hex } from "../kernel/hash.ts";

export const EMPTY_ROOT = sha256Hex("");

const HEX64 = /^[0-9a-f]{64}$/;
const JOINED = Buffer.alloc(65);
JOINED[0] = 1;

/** The hash of a node, from and to hex: cheaper by far than the same with buffers. */
export function joinHashes(left: string, right: string): string {
  JOINED.write(left, 1, "hex");
  JOINED.write(right, 33, "hex");
  return digest("sha256", JOINED, "hex");
}

/** The root that an inclusion proof leads to, or undefined where the proof has the wrong shape. */
export function rootFromProof(
  leaf: string,
  index: number,
  size: number,
  proof: readonly string[],
): string | undefined {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size)
    return undefined;
  let fn = index;
  let sn = size - 1;
  let hash = leaf;
  for (const sibling of proof) {
    if (sn === 0 || !HEX64.test(sibling)) return undefined;
    if (fn % 2 === 1 || fn === sn) {
      hash = joinHashes(sibling, hash);
      while (fn % 2 === 0 && fn !== 0) {
        fn = Math.floor(fn / 2);
        sn = Math.floor(sn / 2);
      }
    } else {
      hash = joinHashes(hash, sibling);
    }
    fn = Math.floor(fn / 2);
    sn = Math.floor(sn / 2);
  }
  return sn === 0 ? hash : undefined;
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
  if (path.length === 0 || !path.every((hash) => HEX64.test(hash))) return false;
  let fr = path[0]!;
  let sr = path[0]!;
  for (const node of path.slice(1)) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      fr = joinHashes(node, fr);
      sr = joinHashes(node, sr);
      while (fn % 2 === 0 && fn !== 0) up();
    } else {
      sr = joinHashes(sr, node);
    }
    up();
  }
  return sn === 0 && fr === first.root && sr === second.root;
}
