/** Differences of texts: right for every pair, and short. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DiffLine, diffLines } from "./diff.ts";

const shown = (lines: readonly DiffLine[]) =>
  lines.map(({ kind, text }) => `${{ same: " ", added: "+", removed: "-", gap: "~" }[kind]}${text}`);

describe("diffLines", () => {
  it("finds nothing in equal texts", () => {
    expect(diffLines("a\nb\n", "a\nb")).toEqual([]);
  });

  it("shows a change with what is around it, and leaves out the rest", () => {
    const before = Array.from({ length: 20 }, (_, i) => `line ${i}`).join("\n");
    const after = before.replace("line 10", "line ten").replace("line 18\n", "");
    expect(shown(diffLines(before, after))).toEqual([
      " line 7",
      " line 8",
      " line 9",
      "-line 10",
      "+line ten",
      " line 11",
      " line 12",
      " line 13",
      "~",
      " line 15",
      " line 16",
      " line 17",
      "-line 18",
      " line 19",
    ]);
  });

  it("says for every pair what to take away and what to add", () => {
    // So short that nothing is left out: both texts can be read back from the difference.
    const text = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before.join("\n"), after.join("\n"));
        const side = (kind: DiffLine["kind"]) =>
          lines.filter((line) => line.kind === "same" || line.kind === kind).map((line) => line.text);
        const equal = before.join() === after.join();
        expect(side("removed")).toEqual(equal ? [] : before);
        expect(side("added")).toEqual(equal ? [] : after);
      }),
    );
  });

  it("does not try to be clever with texts that nobody would compare", () => {
    const before = Array.from({ length: 3_000 }, (_, i) => `a${i}`).join("\n");
    const after = Array.from({ length: 3_000 }, (_, i) => `b${i}`).join("\n");
    expect(diffLines(before, after)).toHaveLength(6_000);
  });
});
