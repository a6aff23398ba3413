/**
 * RFC 6962 Merkle tree over the chain: hashes nodes and follows proofs. The leaves are the bytes that record hashes
 * cover. The tree is derived data; `src/evidence/chain` builds it in chunks.
 */
import { hash as digest } from "node:crypto";
import { sha256Hex } from "../kernel/hash.ts";

export const EMPTY_ROOT = sha256Hex("");

const HEX64 = /^[0-9a-f]{64}$/;
const JOINED = Buffer.alloc(65);
JOINED[0] = 1;

/** Hashes two child nodes, hex in and hex out. Much cheaper than the same with buffers. */
export function joinHashes(left: string, right: string): string {
  JOINED.write(left, 1, "hex");
  JOINED.write(right, 33, "hex");
  return digest("sha256", JOINED, "hex");
}

/** Computes the root from an inclusion proof, or undefined if the proof has the wrong shape. */
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
 * Checks that the tree of `first` leaves is a prefix of the tree of `second` leaves. Follows the algorithm of RFC 9162,
 * section 2.1.4.2, over the proofs of RFC 6962, section 2.1.2. The walk must use the whole proof and end exactly there.
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
  // A full subtree is its own first node, so the proof omits it.
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
