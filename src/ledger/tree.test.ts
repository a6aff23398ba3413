import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { EMPTY_ROOT, leafHash, nodeHash, rootFromProof, TreeBuilder } from "./tree.ts";

/** The RFC's own recursive definition, as an independent oracle. */
function root(leaves: Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0]!;
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return nodeHash(root(leaves.slice(0, k)), root(leaves.slice(k)));
}

const leaves = Array.from({ length: 70 }, (_, i) => leafHash(`leaf ${i}`));

describe("the tree", () => {
  it("of nothing is the hash of nothing", () => {
    expect(new TreeBuilder().root()).toBe(EMPTY_ROOT);
  });

  it("keeps leaves and nodes apart by their first byte", () => {
    const sha = (...parts: (string | Uint8Array)[]) =>
      parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
    expect(leafHash("a")).toEqual(sha(Buffer.from([0]), "a"));
    const [a, b] = [leafHash("a"), leafHash("b")];
    expect(nodeHash(a, b)).toEqual(sha(Buffer.from([1]), a, b));
  });

  it("has the root of RFC 6962 at every size, and proofs that lead to it", () => {
    for (let n = 1; n <= leaves.length; n++) {
      const tree = new TreeBuilder();
      for (let i = 0; i < n; i++) tree.add(leaves[i]!, true);
      const wanted = root(leaves.slice(0, n)).toString("hex");
      expect(tree.root()).toBe(wanted);
      const { proofs } = tree.finish();
      for (let i = 0; i < n; i++) {
        const proof = proofs.get(i)!;
        expect(rootFromProof(leaves[i]!, i, n, proof)).toBe(wanted);
        expect(rootFromProof(leaves[i]!, i, n, [...proof, wanted])).toBeUndefined();
        if (proof.length > 0) expect(rootFromProof(leaves[i]!, i, n, proof.slice(1))).not.toBe(wanted);
        if (n > 1) expect(rootFromProof(leaves[i]!, (i + 1) % n, n, proof)).not.toBe(wanted);
      }
      expect(rootFromProof(leaves[0]!, n, n, [])).toBeUndefined();
    }
    expect(rootFromProof(leaves[0]!, 0, 0, [])).toBeUndefined();
  });
});
