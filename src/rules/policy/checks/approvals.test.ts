import { describe, expect, it } from "vitest";
import type { ApprovalTerms } from "../finding.ts";
import { canDecide, mergeTerms, needsMet } from "./approvals.ts";

const terms = (fields: Partial<ApprovalTerms>): ApprovalTerms => ({
  groups: [],
  quorum: 1,
  ttl_ms: 1_000,
  escalate_after_ms: null,
  escalate_to: [],
  ...fields,
});

describe("merged approval terms", () => {
  it("keep each rule's own demand", () => {
    const merged = mergeTerms([
      terms({ groups: ["finance"], quorum: 2 }),
      terms({ groups: ["security"] }),
      terms({}),
    ]);
    expect(merged.needs).toEqual([
      { groups: ["finance"], quorum: 2 },
      { groups: ["security"], quorum: 1 },
    ]);
    const person = (...groups: string[]) => ({ groups });
    expect(needsMet(merged.needs, [person("finance"), person("finance")])).toBe(false);
    expect(needsMet(merged.needs, [person("finance"), person("security")])).toBe(false);
    expect(needsMet(merged.needs, [person("finance"), person("finance"), person("security")])).toBe(true);
    expect(needsMet(merged.needs, [person("finance", "security"), person("finance")])).toBe(true);
  });

  it("are met by anybody where no group is named", () => {
    const { needs } = mergeTerms([terms({ quorum: 2 })]);
    expect(needsMet(needs, [{ groups: [] }])).toBe(false);
    expect(needsMet(needs, [{ groups: [] }, { groups: ["x"] }])).toBe(true);
  });

  it("take the shortest times", () => {
    const merged = mergeTerms([
      terms({ ttl_ms: 5, escalate_after_ms: 4 }),
      terms({ ttl_ms: 9, escalate_after_ms: 3 }),
      terms({ ttl_ms: 7 }),
    ]);
    expect(merged).toMatchObject({ ttl_ms: 5, escalate_after_ms: 3 });
  });
});

describe("mayDecide", () => {
  it("asks for one of the groups, or for none", () => {
    expect(canDecide({ groups: [] }, [])).toBe(true);
    expect(canDecide({ groups: ["a", "b"] }, ["b"])).toBe(true);
    expect(canDecide({ groups: ["a"] }, ["b"])).toBe(false);
  });
});
