// The RFC 6962 tree beside the chain: roots and inclusion proofs. Leaves and nodes are hashed with different first
// bytes, so that neither can pass for the other.

import { fromHex, sha256, toHex } from "./sha256.js";

export const EMPTY_ROOT = toHex(sha256(new Uint8Array(0)));
const nodeInput = new Uint8Array(65);

function nodeHash(left, right) {
  nodeInput[0] = 1;
  nodeInput.set(left, 1);
  nodeInput.set(right, 33);
  return sha256(nodeInput);
}

/** A list of 32-byte leaf hashes in one buffer that doubles as it grows. */
export class Leaves {
  constructor() {
    this.count = 0;
    this.bytes = new Uint8Array(32 * 1024);
  }

  push(leaf) {
    if (this.bytes.length < (this.count + 1) * 32) {
      const larger = new Uint8Array(this.bytes.length * 2);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    this.bytes.set(leaf, this.count * 32);
    this.count++;
  }

  at(index) {
    return this.bytes.subarray(index * 32, index * 32 + 32);
  }

  /** The root over the first n leaves for each n asked for, as a map from n to hex, in one pass. */
  roots(sizes) {
    const wanted = new Set(sizes);
    let last = 0;
    for (const size of wanted) if (size <= this.count) last = Math.max(last, size);
    const found = new Map([[0, EMPTY_ROOT]]);
    const peaks = []; // roots of the full subtrees so far, largest first: one for each 1 bit of the size
    for (let size = 1; size <= last; size++) {
      let carry = this.at(size - 1);
      for (let full = size - 1; full % 2 === 1; full = Math.floor(full / 2))
        carry = nodeHash(peaks.pop(), carry);
      peaks.push(carry);
      if (wanted.has(size)) found.set(size, toHex(peaks.reduceRight((right, left) => nodeHash(left, right))));
    }
    return found;
  }
}

/**
 * Whether `path` shows that `leaf` is number `index` of the `size` leaves under `root` (RFC 9162, 2.1.3.2). The
 * walk must use up the path and arrive at the top exactly then, which refuses paths of a wrong length.
 */
export function provesInclusion(leaf, index, size, path, root) {
  if (index >= size) return false;
  let here = index;
  let last = size - 1;
  let running = leaf;
  for (const sibling of path) {
    if (last === 0) return false;
    if (here % 2 === 1 || here === last) {
      running = nodeHash(sibling, running);
      while (here !== 0 && here % 2 === 0) {
        here = Math.floor(here / 2);
        last = Math.floor(last / 2);
      }
    } else {
      running = nodeHash(running, sibling);
    }
    here = Math.floor(here / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && toHex(running) === root;
}

/**
 * Whether `path` shows that the tree of `first` leaves is the beginning of the tree of `second` (RFC 9162, 2.1.4.2).
 * Like the walk above it must use up the path and arrive at the top exactly then.
 */
export function provesConsistency(first, second, path, firstRoot, secondRoot) {
  if (first > second) return false;
  if (first === second) return path.length === 0 && firstRoot === secondRoot;
  if (first === 0) return path.length === 0 && firstRoot === EMPTY_ROOT;
  let here = first - 1;
  let last = second - 1;
  const climb = () => {
    here = Math.floor(here / 2);
    last = Math.floor(last / 2);
  };
  while (here % 2 === 1) climb();
  const nodes = here === 0 ? [fromHex(firstRoot), ...path] : path;
  if (nodes.length === 0) return false;
  let left = nodes[0];
  let right = nodes[0];
  for (const node of nodes.slice(1)) {
    if (last === 0) return false;
    if (here % 2 === 1 || here === last) {
      left = nodeHash(node, left);
      right = nodeHash(node, right);
      while (here !== 0 && here % 2 === 0) climb();
    } else {
      right = nodeHash(right, node);
    }
    climb();
  }
  return last === 0 && toHex(left) === firstRoot && toHex(right) === secondRoot;
}
