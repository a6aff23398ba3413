import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { policyCall } from "../../../test/support/policy-call.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import { MatchIndex } from "./match.ts";

describe("MatchIndex", () => {
  it("finds what testing every glob would find, in the same order", () => {
    const name = fc.stringMatching(/^[ab.]{0,4}$/);
    const glob = fc
      .oneof(
        name,
        fc.stringMatching(/^[ab.*?]{1,5}$/),
        fc.stringMatching(/^[ab]?\{[ab*],[ab.]{0,2}\}[ab*]?$/),
      )
      .filter((g) => g !== "");
    fc.assert(
      fc.property(fc.array(glob), name, (globs, tool) => {
        const index = new MatchIndex(globs.map((source, i) => ({ match: { tool: source }, item: i })));
        const naive = globs.flatMap((source, i) => (globMatches(source, tool) ? [i] : []));
        expect(index.matching(policyCall({ tool }))).toEqual(naive);
      }),
      { numRuns: 3_000 },
    );
  });

  it("does not look at entries for other tools, however many there are", () => {
    const entries = Array.from({ length: 10_000 }, (_, i) => ({
      match: { tool: i % 2 === 0 ? `tool${i}.*` : `tool${i}.run`, actor: "nobody" },
      item: i,
    }));
    const index = new MatchIndex(entries);
    let looks = 0;
    const watched = policyCall({ tool: "tool4242.run" });
    Object.defineProperty(watched, "actor", {
      get: () => {
        looks++;
        return "nobody";
      },
    });
    expect(index.matching(watched)).toEqual([4242]);
    expect(looks).toBe(1);
    expect(index.all()).toHaveLength(10_000);
  });

  it("treats a missing match as one for everything", () => {
    const index = new MatchIndex([
      { match: undefined, item: "all" },
      { match: { tenant: "acme" }, item: "acme" },
    ]);
    expect(index.matching(policyCall({}))).toEqual(["all"]);
    expect(index.matching(policyCall({ tenant: "acme" }))).toEqual(["all", "acme"]);
  });
});
