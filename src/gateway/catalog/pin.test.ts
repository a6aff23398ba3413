import { describe, expect, it } from "vitest";
import type { PinDoc } from "../../govern/port/docs.ts";
import { isChanged, isUnassigned, type NameClaim, nextPin, pinHolder } from "./pin.ts";

type Offered = { hash: string; upstream: { name: string } };
const offer = (text: string): Offered => {
  const [name, hash] = text.split(" ") as [string, string];
  return { hash, upstream: { name } };
};
/** `a d1`: upstream a offers definition d1. Upstreams a and b are configured; those in `away` are not connected. */
function claim(offers: string[], away: string[] = [], configured = ["a", "b"]): NameClaim<Offered> {
  return {
    tool: "t",
    offers: offers.map(offer),
    upstreams: new Map(configured.map((name) => [name, !away.includes(name)])),
  };
}
const holder = (pin: PinDoc | undefined, given: NameClaim<Offered>) => pinHolder(pin, given)?.upstream.name;
const next = (pin: PinDoc | undefined, given: NameClaim<Offered>, manifest: string | null = "m1", now = 9) =>
  nextPin(pin, given, manifest, now);
const { upstream: _, ...old } = next(undefined, claim(["a d1"]), "m1", 1)!;
const first: PinDoc = { ...old, upstream: "a" };

describe("a tool that is first seen", () => {
  it("is pinned with its upstream and its manifest", () => {
    expect(first).toEqual({
      tool: "t",
      hash: "d1",
      upstream: "a",
      first_seen_ms: 1,
      changed_ms: null,
      changed_hash: null,
      manifest_hash: "m1",
    });
    expect(next(first, claim(["a d1"]))).toBe(first);
  });

  it("is nobody's while two offer it", () => {
    const both = claim(["b d1", "a d1"]);
    expect([next(undefined, both), holder(undefined, both)]).toEqual([undefined, undefined]);
    expect(isUnassigned(undefined, both)).toBe(true);
  });
});

describe("a definition that changes", () => {
  it("does not take an earlier approval for a later change", () => {
    const approved = next(first, claim(["a d1"]), "m2")!;
    expect(approved).toMatchObject({ hash: "d1", manifest_hash: "m2" });
    const changed = next(approved, claim(["a d2"]), "m2", 3)!;
    expect(changed).toMatchObject({ hash: "d1", changed_hash: "d2", changed_ms: 3 });
    expect(isChanged(changed, offer("a d2"))).toBe(true);
    for (const none of ["m2", null]) expect(next(changed, claim(["a d2"]), none, 4)).toBe(changed);
    expect(next(changed, claim(["a d2"]), "m3")).toMatchObject({
      hash: "d2",
      manifest_hash: "m3",
      changed_ms: null,
    });
  });

  it("is forgotten when it is revoked", () => {
    const changed = next(first, claim(["a d2"]));
    expect(next(changed, claim(["a d1"]))).toEqual(first);
  });
});

describe("a name that another upstream begins to offer", () => {
  it.each([["b d1"], ["b d2"]])("stays with the first, whatever comes before it: %s", (newcomer) => {
    const both = claim([newcomer, "a d1"]);
    const claimed = next(first, both, "m1", 5)!;
    expect(claimed).toEqual({ ...first, claimed: { by: ["b"], since_ms: 5 } });
    expect([holder(claimed, both), isUnassigned(claimed, both)]).toEqual(["a", false]);
    expect(next(claimed, both, "m1", 6)).toBe(claimed);
    // Another manifest is for the tool of the one who has the name.
    expect(next(claimed, both, "m2")).toMatchObject({ hash: "d1", upstream: "a", manifest_hash: "m2" });
    expect(next(claimed, claim(["a d1"]))).toEqual(first);
  });

  it("stays with the first while that is away, and an approval in between is not the other's", () => {
    const away = claim(["b d1"], ["a"]);
    const claimed = next(first, away, "m2", 5)!;
    expect(claimed).toMatchObject({
      upstream: "a",
      manifest_hash: "m2",
      claimed: { by: ["b"], since_ms: 5 },
    });
    expect(holder(claimed, away)).toBeUndefined();
    const back = claim(["b d1"]);
    const moved = next(claimed, back, "m2", 6)!;
    expect(moved).toMatchObject({ upstream: "a", changed_hash: "d1", changed_upstream: "b", changed_ms: 6 });
    expect(isChanged(moved, offer("b d1"))).toBe(true);
  });

  it.each([
    ["no longer offers it", ["a", "b"]],
    ["is no longer configured", ["b"]],
  ])("is the other's by a new approval, once the first %s", (_why, configured) => {
    const left = claim(["b d1"], [], configured);
    const moved = next(first, left)!;
    expect([holder(moved, left), isChanged(moved, offer("b d1"))]).toEqual(["b", true]);
    expect(next(moved, left)).toBe(moved);
    const taken = next(moved, left, "m2")!;
    expect(taken).toMatchObject({ upstream: "b", manifest_hash: "m2", changed_ms: null });
    expect(taken).not.toHaveProperty("changed_upstream");
    expect(isChanged(taken, offer("b d1"))).toBe(false);
    // Without one it is the first's as soon as that is back.
    expect(next(moved, claim(["b d1", "a d1"]))).toMatchObject({ ...first, claimed: { by: ["b"] } });
  });

  it("is nobody's when the first is gone and two others offer it", () => {
    const two = claim(["b d1", "c d1"], [], ["b", "c"]);
    expect([holder(first, two), isUnassigned(first, two)]).toEqual([undefined, true]);
  });
});

describe("a pin of an earlier version, without an upstream", () => {
  it("learns it from the only one that offers the definition, when all have shown their tools", () => {
    expect(next(old, claim(["a d1"]))).toEqual(first);
  });

  it("works and learns nothing while another might still come with it", () => {
    const away = claim(["a d1"], ["b"]);
    expect([next(old, away), holder(old, away)]).toEqual([old, "a"]);
  });

  it("means the one with the pinned definition, and nobody if two have it", () => {
    const two = claim(["b d2", "a d1"]);
    expect(holder(old, two)).toBe("a");
    expect(next(old, two)).toEqual({ ...old, claimed: { by: ["b"], since_ms: 9 } });
    expect(holder(old, claim(["b d1", "a d1"]))).toBeUndefined();
    expect(isUnassigned(old, two)).toBe(true);
  });

  it("does not learn it from a changed definition", () => {
    const changed = next(old, claim(["b d2"]))!;
    expect(changed).toEqual({ ...old, changed_ms: 9, changed_hash: "d2" });
    expect(next(changed, claim(["b d2"]), "m2")).toMatchObject({ upstream: "b", hash: "d2" });
  });
});
