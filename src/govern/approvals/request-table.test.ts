/** The table of a group: equal values, different values, and unusual ones. */
import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { groupQuestion, requestsForTable, requestTable, unusualValues } from "./request-table.ts";

const asked = (...all: JsonValue[]) =>
  all.map((args, i) => ({ id: `r${i}`, args, fields: [{ path: "$args.amount", as: "money" as const }] }));

describe("unusual values", () => {
  const cases: [name: string, values: (JsonValue | undefined)[], unusual: number[]][] = [
    ["two values are not enough to tell", [1, 1_000_000], []],
    ["a number far from the median", [10, 12, 11, 1_840, 13], [3]],
    ["a number that is not what all others are", [10, 10, 10, 10.5], [3]],
    ["numbers that are spread", [1, 5, 9, 14, 20, 27], []],
    ["a number that is written as text", ["10.00", "12.00", "11.50", "1840.00"], [3]],
    ["a number far below", [100, 101, 99, 102, -5_000], [4]],
    ["a rare word", ["EUR", "EUR", "EUR", "USD"], [3]],
    ["words that are about as common", ["EUR", "EUR", "USD", "USD"], []],
    ["names that all differ", ["c-1", "c-2", "c-3", "c-10"], []],
    ["a text that is much longer", ["ls a", "ls b", "ls c", `ls d; ${"x".repeat(40)}`], [3]],
    ["a type that is rare", ["c-1", "c-2", "c-3", ["c-4", "c-5"]], [3]],
    ["an argument that only one has", [undefined, undefined, undefined, "mallory"], [3]],
    ["an argument that only one lacks", [true, true, undefined, true], [2]],
    [
      "objects, whatever the order of their members",
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
        { a: 1, b: 2 },
        { a: 9, b: 2 },
      ],
      [3],
    ],
  ];
  it.each(cases)("%s", (_, values, unusual) => {
    verifies("beyond.flood.unusual");
    expect(unusualValues(values).flatMap((is, i) => (is ? [i] : []))).toEqual(unusual);
  });
});

it("lists equal values once, different ones in columns, and unusual rows first", () => {
  verifies("beyond.flood.table");
  const refund = (amount: number, customer: string, more: object = {}) =>
    ({ amount, currency: "EUR", customer, ...more }) as JsonValue;
  const table = requestTable(
    asked(refund(12, "c-1"), refund(1_840, "c-2"), refund(12.5, "c-3"), refund(13, "c-4", { "Sum: 9": 1 })),
  );
  expect(table.same).toEqual([{ name: "currency", text: "EUR" }]);
  expect(table.columns).toEqual([
    { name: "amount", range: "12 to 1,840, 1,877.50 in total" },
    { name: "customer", range: "4 different values" },
    { name: '"Sum: 9"', range: "1, not given in 3" },
  ]);
  expect(table.rows.map(({ id, unusual }) => [id, unusual])).toEqual([
    ["r1", true],
    ["r3", true],
    ["r0", false],
    ["r2", false],
  ]);
  expect(table.rows[0]!.cells).toEqual([
    { text: "1,840", unusual: true },
    { text: "c-2", unusual: false },
    { text: "(not given)", unusual: false },
  ]);
  expect(groupQuestion("approve", { tool: "pay.refund", actor: "bot" }, table)).toBe(
    'Approve 4 requests for pay.refund by bot: amount 12 to 1,840, 1,877.50 in total; customer 4 different values; "Sum: 9" 1, not given in 3; currency EUR?',
  );
});

it("holds so many rows and characters, and never none", () => {
  verifies("beyond.flood.bounded");
  expect(requestsForTable(asked(...Array(250).fill({ a: 1 })))).toHaveLength(SERVICE_LIMITS.group_rows);
  const long = { text: "x".repeat(SERVICE_LIMITS.group_chars / 4) };
  expect(requestsForTable(asked(...Array(10).fill(long)))).toHaveLength(3);
  expect(requestsForTable(asked({ text: "x".repeat(SERVICE_LIMITS.group_chars + 1) }))).toHaveLength(1);
});

it("a request with another cause is marked, and comes first", () => {
  const one = (id: string, causes: string[] = []) => ({ id, args: { to: "ann" }, fields: [], causes });
  const table = requestTable([one("a"), one("b"), one("c", ["foreign value"])]);
  expect(table.columns).toEqual([{ name: "cause", range: "2 different" }]);
  expect(table.rows.map(({ id, unusual }) => [id, unusual])).toEqual([
    ["c", true],
    ["a", false],
    ["b", false],
  ]);
  expect(requestTable([one("a", ["x"]), one("b", ["x"])]).columns).toEqual([]);
});

it("tells texts from other values, and letters from those that look like them", () => {
  verifies("beyond.card.lookalikes", "beyond.flood.table");
  const { columns, rows } = requestTable(
    asked({ f: false, to: "same" }, { f: "false", to: "s\u0430me" }, { f: false, to: "same " }),
  );
  expect(columns[0]).toEqual({ name: "f", range: "false, false (a text)" });
  expect(rows.flatMap(({ cells }) => cells.map(({ text }) => text))).toEqual(
    expect.arrayContaining([
      "false (a text)",
      'sаme (mixes letters that look alike: "sаme" (spelled s\\u{430}me))',
      "same  (ends with white space)",
    ]),
  );
});
