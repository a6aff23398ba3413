import { describe, expect, it } from "vitest";
import { plainLeaf, plainPath, plainRoot } from "../../test/evidence/support/oracle.ts";
import { EMPTY_ROOT, isConsistent, joinHashes, rootFromProof } from "./merkle-tree.ts";

const leaves = Array.from({ length: 70 }, (_, i) => plainLeaf(`leaf ${i}`));

describe("the tree", () => {
  it("of nothing is the hash of nothing, and a node differs from a leaf of the same bytes", () => {
    expect(EMPTY_ROOT).toBe(plainRoot([]));
    const [a, b] = leaves as [string, string];
    expect(joinHashes(a, b)).toBe(plainRoot([a, b]));
    expect(joinHashes(a, b)).not.toBe(plainLeaf(Buffer.from(a + b, "hex").toString("latin1")));
  });

  it("has proofs that lead to the root of RFC 6962 at every size", () => {
    for (let n = 1; n <= leaves.length; n++) {
      const wanted = plainRoot(leaves.slice(0, n));
      for (let i = 0; i < n; i++) {
        const proof = plainPath(i, leaves.slice(0, n));
        expect(rootFromProof(leaves[i]!, i, n, proof)).toBe(wanted);
        expect(rootFromProof(leaves[i]!, i, n, [...proof, wanted])).toBeUndefined();
        if (proof.length > 0) expect(rootFromProof(leaves[i]!, i, n, proof.slice(1))).not.toBe(wanted);
        if (n > 1) expect(rootFromProof(leaves[i]!, (i + 1) % n, n, proof)).not.toBe(wanted);
      }
      expect(rootFromProof(leaves[0]!, n, n, [])).toBeUndefined();
    }
    expect(rootFromProof(leaves[0]!, 0, 0, [])).toBeUndefined();
  });

  it("takes nothing for a proof that is not made of hashes", () => {
    const [first, second] = [3, 7].map((size) => ({ size, root: plainRoot(leaves.slice(0, size)) }));
    const proof = [leaves[2]!, leaves[3]!, plainRoot(leaves.slice(0, 2)), plainRoot(leaves.slice(4, 7))];
    expect(isConsistent(first!, second!, proof)).toBe(true);
    for (const odd of ["", leaves[2]!.slice(2), `${leaves[2]}00`, leaves[2]!.toUpperCase()])
      expect(isConsistent(first!, second!, proof.with(0, odd))).toBe(false);
  });
});
