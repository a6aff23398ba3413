import { expect, it } from "vitest";
import * as z from "zod";
import { verifies } from "../../../test/support/verifies.ts";
import { cutLongLists } from "./long-lists.ts";
import { describeIssues } from "./validation-messages.ts";

const LIST = 9_000;
let looked = 0;
const schema = z.strictObject({
  calls: z
    .array(
      z.strictObject({ tool: z.string() }).refine(() => {
        looked++;
        return true;
      }),
    )
    .max(10_000, "at most 10000 calls"),
  any: z.array(z.int()).optional(),
});

it("cuts a long list after its first wrong item, so that few problems are collected", () => {
  verifies("beyond.heavy.attack");
  const calls = Array.from({ length: LIST }, (_, i) => ({ tool: i < 7 ? "a" : 1 }));
  const { error } = schema.safeParse(cutLongLists(schema, { calls }));
  expect(error!.issues).toHaveLength(1);
  expect(describeIssues(error!, "request")).toMatch(/^calls\[7\]\.tool: must be/);
});

it("leaves lists that are right, short or over their maximum, and other inputs, as they are", () => {
  const calls = Array.from({ length: LIST }, () => ({ tool: "a" }));
  for (const input of [{ calls }, { calls: [1, 2] }, { calls: "x" }, { other: Array(LIST) }, null, 5])
    expect(cutLongLists(schema, input)).toBe(input);
  looked = 0;
  const over = { calls: Array.from({ length: 10_001 }, () => ({ tool: "a" })) };
  expect(cutLongLists(schema, over)).toBe(over);
  expect(looked).toBe(0);
});

it("names at most some of many problems, those of outer fields first", () => {
  const shape = z.strictObject({ calls: z.array(z.int()), name: z.string() });
  const { error } = shape.safeParse({ calls: Array(1_000).fill("x"), name: 1 });
  const text = describeIssues(error!, "request");
  expect(text).toMatch(/^name: .*; calls\[0\]: /);
  expect(text.split("; ")).toHaveLength(51);
  expect(text).toMatch(/and 951 more$/);
});
