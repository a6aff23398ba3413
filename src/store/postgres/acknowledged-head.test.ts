import { describe, expect, it } from "vitest";
import { EMPTY_HEAD } from "../../ledger/record.ts";
import { AcknowledgedHead, assertHasAcknowledged } from "./acknowledged-head.ts";

const head = (records: number, branch = "a") => ({ records, hash: `${branch}${records}` });

describe("the acknowledged head", () => {
  it("only grows", () => {
    const acknowledged = new AcknowledgedHead();
    for (const records of [1, 3, 2]) acknowledged.note(head(records));
    expect(acknowledged.newest).toEqual(head(3));
  });

  it("takes a seen head only if it continues from there", () => {
    const acknowledged = new AcknowledgedHead();
    acknowledged.noteSeen(head(2), { acknowledged: EMPTY_HEAD, there: null });
    expect(acknowledged.newest).toEqual(head(2));
    acknowledged.noteSeen(head(9, "b"), { acknowledged: acknowledged.newest, there: "b2" });
    acknowledged.noteSeen(head(9, "b"), { acknowledged: acknowledged.newest, there: null });
    expect(acknowledged.newest).toEqual(head(2));
    const before = acknowledged.newest;
    acknowledged.note(head(3));
    // Asked before the last answer was given: what it says of that one is nothing.
    acknowledged.noteSeen(head(9), { acknowledged: before, there: "a2" });
    expect(acknowledged.newest).toEqual(head(3));
    acknowledged.noteSeen(head(4), { acknowledged: acknowledged.newest, there: "a3" });
    expect(acknowledged.newest).toEqual(head(4));
  });

  it.each([
    ["shorter", 2, null],
    ["shorter by its head alone", 2, "a3"],
    ["another one", 3, "b3"],
    ["another one that has grown", 9, "b3"],
  ])("is held against a ledger that is %s", (_, records, there) => {
    expect(() => assertHasAcknowledged(head(3), records, there)).toThrow(/record 2 was acknowledged/);
  });

  it("is confirmed by a ledger that continues from there, and by any when nothing was acknowledged", () => {
    assertHasAcknowledged(head(3), 3, "a3");
    assertHasAcknowledged(head(3), 7, "a3");
    assertHasAcknowledged(EMPTY_HEAD, 0, null);
  });
});
