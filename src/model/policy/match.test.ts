import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { globMatches } from "../../kernel/glob.ts";
import type { PolicyCall } from "./call.ts";
import { MatchIndex } from "./match.ts";

const call = (fields: Partial<PolicyCall>): PolicyCall => ({
  tool: "t",
  args: {},
  actor: "a",
  tenant: null,
  environment: null,
  effect: null,
  data_class: null,
  blast_radius: null,
  source: [],
  sink: [],
  step: 0,
  run_id: "r",
  ...fields,
});

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
        expect(index.matching(call({ tool }))).toEqual(naive);
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
    const watched = call({ tool: "tool4242.run" });
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
    expect(index.matching(call({}))).toEqual(["all"]);
    expect(index.matching(call({ tenant: "acme" }))).toEqual(["all", "acme"]);
  });
});
