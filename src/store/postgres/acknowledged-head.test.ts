import { describe, expect, it } from "vitest";
import { EMPTY_HEAD } from "../../ledger/record.ts";
import { AcknowledgedHead, assertHasAcknowledged } from "./acknowledged-head.ts";

const head = (records: number, branch = "a") => ({ records, hash: `${branch}${records}` });

describe("what was told", () => {
  it("only grows", () => {
    const told = new AcknowledgedHead();
    for (const records of [1, 3, 2]) told.note(head(records));
    expect(told.newest).toEqual(head(3));
  });

  it("takes what was seen only where it goes on from there", () => {
    const told = new AcknowledgedHead();
    told.noteSeen(head(2), { told: EMPTY_HEAD, there: null });
    expect(told.newest).toEqual(head(2));
    told.noteSeen(head(9, "b"), { told: told.newest, there: "b2" });
    told.noteSeen(head(9, "b"), { told: told.newest, there: null });
    expect(told.newest).toEqual(head(2));
    const before = told.newest;
    told.note(head(3));
    // Asked before the last answer was given: what it says of that one is nothing.
    told.noteSeen(head(9), { told: before, there: "a2" });
    expect(told.newest).toEqual(head(3));
    told.noteSeen(head(4), { told: told.newest, there: "a3" });
    expect(told.newest).toEqual(head(4));
  });

  it.each([
    ["shorter", 2, null],
    ["shorter by its head alone", 2, "a3"],
    ["another one", 3, "b3"],
    ["another one that has grown", 9, "b3"],
  ])("is held against a ledger that is %s", (_, records, there) => {
    expect(() => assertHasAcknowledged(head(3), records, there)).toThrow(/record 2 was acknowledged/);
  });

  it("is borne out by a ledger that goes on from there, and by any when nothing was told", () => {
    assertHasAcknowledged(head(3), 3, "a3");
    assertHasAcknowledged(head(3), 7, "a3");
    assertHasAcknowledged(EMPTY_HEAD, 0, null);
  });
});
