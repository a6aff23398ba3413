/** Differences of texts: right for every pair, and short. */
import { diffArrays } from "diff";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LARGEST_PAIRS } from "../../../stress/attack/largest.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { type DiffLine, diffLines, newDiffBudget } from "./diff.ts";

const shown = (lines: readonly DiffLine[]) =>
  lines.map(({ kind, text }) => `${{ same: " ", added: "+", removed: "-", gap: "~" }[kind]}${text}`);

describe("diffLines", () => {
  it("finds nothing in equal texts", () => {
    expect(diffLines("a\nb\n", "a\nb")).toEqual([]);
  });

  it("shows a change with the lines around it, and leaves out the rest", () => {
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

  it("finds the fewest changes in texts of few different lines", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        const changes = diffLines(before.join("\n"), after.join("\n")).filter(
          ({ kind }) => kind === "added" || kind === "removed",
        );
        // A line that occurs once on either side is kept, where the fewest changes would move it: within a few lines.
        const fewest = diffArrays(before, after).reduce(
          (sum, { added, removed, value }) => sum + (added || removed ? value.length : 0),
          0,
        );
        expect(changes.length).toBeGreaterThanOrEqual(fewest);
        expect(changes.length).toBeLessThanOrEqual(fewest + 12);
      }),
    );
  });

  it("shows both sides one after the other where nothing is alike", () => {
    const before = Array.from({ length: 3_000 }, (_, i) => `a${i}`).join("\n");
    const after = Array.from({ length: 3_000 }, (_, i) => `b${i}`).join("\n");
    expect(diffLines(before, after)).toHaveLength(6_000);
  });

  it.each(Object.entries(LARGEST_PAIRS))(
    "compares a bounded number of lines, and keeps both texts whole: %s",
    (_name, make) => {
      verifies("beyond.heavy.diff-bounded");
      for (const bytes of [10_000, 55_000, 400_000]) {
        const [before, after] = make(bytes);
        const budget = newDiffBudget();
        const { steps } = budget;
        const lines = diffLines(before, after, budget);
        const count = (text: string) => text.split("\n").length;
        // The lines of one match may be looked at beyond the last step.
        expect(steps - budget.steps).toBeLessThanOrEqual(steps + count(before));
        const of = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
        expect(count(after) - count(before)).toBe(of("added") - of("removed"));
      }
    },
  );
});
