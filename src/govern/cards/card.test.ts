import { describe, expect, it } from "vitest";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import { CARD_HASH_ROWS, type CardHashRows, hashingCardContent } from "./card.ts";
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
