import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FreshDatabase, freshDatabase } from "../../../test/support/postgres.ts";
import { fromKeyText, toKeyText } from "../key-text.ts";
import { bigintArray, doubleArray, textArray } from "./encode.ts";

const text = fc.string({
  unit: fc.oneof(fc.constantFrom("\0", "\u0001", "\u0002", "a", "~"), fc.string({ unit: "binary" })),
});

describe("text", () => {
  it("comes back as it was, without the one character that PostgreSQL cannot hold", () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(toKeyText(value)).not.toContain("\0");
        expect(fromKeyText(toKeyText(value))).toBe(value);
      }),
    );
  });

  it("keeps the order of keys", () => {
    const sign = (a: string, b: string): number => Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(sign(toKeyText(a), toKeyText(b))).toBe(sign(a, b));
      }),
    );
  });
});

describe("arrays", () => {
  let database: FreshDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    database = await freshDatabase();
    client = new pg.Client(database.url);
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });
  const roundTrip = async (type: string, array: Buffer): Promise<unknown> =>
    (await client.query(`SELECT to_json($1::${type}[]) AS value`, [array])).rows[0].value;

  it("of text arrive as they were sent", async () => {
    const value = fc.option(
      fc.string({ unit: "binary" }).map((s) => s.replaceAll("\0", "")),
      { nil: undefined },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(value), async (values) => {
        expect(await roundTrip("text", textArray(values))).toEqual(values.map((v) => v ?? null));
      }),
      { numRuns: 60 },
    );
    const wide = ["日本".repeat(5_000), "", "🦊", undefined, "x".repeat(100_000)];
    expect(await roundTrip("text", textArray(wide))).toEqual(wide.map((v) => v ?? null));
    expect(await roundTrip("text", textArray([]))).toEqual([]);
  });

  it("of numbers arrive as they were sent", async () => {
    const whole = [0, -1, 9007199254740991, -9007199254740991, 1_767_225_600_000];
    expect(await roundTrip("bigint", bigintArray(whole))).toEqual(whole);
    const broken = [0.1, -2.5, 5e-324, 1.7976931348623157e308, 1_767_225_600_000.5];
    expect(await roundTrip("double precision", doubleArray(broken))).toEqual(broken);
    expect(await roundTrip("bigint", bigintArray([]))).toEqual([]);
  });
});
