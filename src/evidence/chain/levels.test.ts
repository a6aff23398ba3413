import { describe, expect, it } from "vitest";
import { plainRoot } from "../../../test/evidence/support/oracle.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { rootFromProof } from "../../ledger/merkle-tree.ts";
import { HashLevels } from "./levels.ts";

describe("the levels of a tree", () => {
  const entries = Array.from({ length: 40 }, (_, i) => sha256Hex(`entry ${i}`));

  it("have every root and every path, also with an open end", () => {
    for (let size = 1; size <= entries.length; size++) {
      const wanted = plainRoot(entries.slice(0, size));
      for (const pushed of [size, size - 1]) {
        const levels = new HashLevels();
        for (const hash of entries.slice(0, pushed)) levels.push(hash);
        const last = entries[pushed];
        expect(levels.root(size, last)).toBe(wanted);
        for (let i = 0; i < size; i++) {
          expect(rootFromProof(entries[i]!, i, size, levels.path(i, size, last))).toBe(wanted);
        }
      }
    }
  });

  it("keep the roots of smaller sizes", () => {
    const levels = new HashLevels();
    const roots = entries.map((hash, i) => {
      levels.push(hash);
      return levels.root(i + 1);
    });
    for (const [i, root] of roots.entries()) expect(levels.root(i + 1)).toBe(root);
    expect(() => levels.root(entries.length + 1)).toThrow("not known");
  });
});
