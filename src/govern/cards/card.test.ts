import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { runAtOnce, UNITS_PER_PAUSE } from "../../kernel/pausable-work.ts";
import { buildingCardContent, CARD_HASH_ROWS, type CardHashRows, hashingCardContent } from "./card.ts";
import type { CardFacts } from "./card-facts.ts";
import type { CardContent } from "./types.ts";

const facts = {
  call: {
    kind: "call",
    tool: "pay",
    step: 3,
    args_hash: "sha256:ab",
    arg_names: ["amount"],
    reason: "invoice 7",
    rule: "large",
  },
  run: { reason: null, salt: "salt", environment: null },
  values: { args: { amount: 900 }, before: { paid: false } },
} as unknown as CardFacts;

const card: CardContent = {
  sentence: "Pay 900",
  parts: [
    { text: "Pay ", value: false },
    { text: "900", value: true },
  ],
  fields: [{ label: "Amount", path: "$args.amount", as: "money", text: "900" }],
  more: [],
  changes: [{ label: "paid", path: "$args.paid", before: "no", after: "yes", lines: [], remarks: ["new"] }],
  note: "Check the invoice",
  reason: "invoice 7",
  run_reason: null,
  rule: { id: "large", reason: "over 500" },
  causes: ["over 500"],
  risk: null,
  irreversible: true,
  way_back: { tool: null, residue: [], text: "cannot be undone" },
};

const hashOf = (shown: CardContent): string => runAtOnce(hashingCardContent(facts, shown));

describe("building a card", () => {
  it("pauses often enough for any number of names, at any depth", () => {
    verifies("beyond.heavy.card-pauses");
    const names = 80_000;
    const wide = Object.fromEntries(Array.from({ length: names }, (_, i) => [`k${i}`, "v"]));
    for (const args of [wide, { deep: { wide } }, { list: Object.keys(wide).map((k) => ({ [k]: 1 })) }]) {
      const about = {
        ...facts,
        manifest: null,
        rule: null,
        values: { args },
      } as unknown as CardFacts;
      const work = buildingCardContent(about);
      let pauses = 0;
      while (!work.next().done) pauses++;
      expect(pauses).toBeGreaterThan(names / UNITS_PER_PAUSE);
    }
  });
});

describe("the card hash", () => {
  it("keeps its value for the same card", () => {
    expect(hashOf(card)).toBe("sha256:0d2b6e6f7e21910fc3cb16007c1cd4256d13c672dd8037b78e247f2db7e79cd7");
  });

  it("changes with every hashed field, and with no other", () => {
    for (const [name, row] of Object.entries<string>(CARD_HASH_ROWS)) {
      const changed = hashOf({ ...card, [name]: "changed" });
      expect(changed === hashOf(card), name).toBe(row === "not hashed");
    }
    const { note: _, ...rest } = card;
    expect(hashOf({ ...rest, unknown: 1 } as unknown as CardContent)).toBe(hashOf(rest as CardContent));
  });

  it("does not compile for a card with an undeclared field", () => {
    // @ts-expect-error the table has no row for `deadline`
    const rows: CardHashRows<CardContent & { deadline: string }> = CARD_HASH_ROWS;
    expect(Object.keys(rows).sort()).toEqual([...Object.keys(card), "confirm"].sort());
  });
});
