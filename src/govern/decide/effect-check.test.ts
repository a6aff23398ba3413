/** What an effect check compares when the call does not have every argument that the expectation names. */
import { expect, test } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { checkEffect } from "./effect-check.ts";

const check = {
  args: { id: "$args.id" },
  expect: { status: 200, body: { title: "$args.title", state: { id: "$args.state" }, by: "$result.by" } },
};
const found = (args: JsonValue, observed: JsonValue, result: JsonValue = { by: "ann" }) =>
  checkEffect(check, { args, result }, observed);
const seen = (body: JsonValue, status = 200) => ({ status, body });

test("an argument that the call does not have says nothing, the others are compared", () => {
  verifies("beyond.effect.optional");
  const args = { id: 1, title: "new" };
  expect(found(args, seen({ title: "new", state: { id: 7 }, by: "ann" })).found).toBe("held");
  expect(found(args, seen({ title: "old", state: { id: 7 }, by: "ann" }))).toEqual({
    found: "missing",
    mismatch: "body.title differs",
  });
  expect(found(args, seen({ title: "new", by: "ann" }, 404)).found).toBe("missing");
  expect(found({ id: 1, state: 2 }, seen({ title: "any", state: { id: 7 }, by: "ann" })).found).toBe(
    "missing",
  );
  // An argument that is null was given.
  expect(found({ ...args, state: null }, seen({ title: "new", state: { id: 7 }, by: "ann" })).found).toBe(
    "missing",
  );
});

test("without any expected argument, or another value, nothing was checked", () => {
  verifies("beyond.effect.optional", "beyond.effect.not-checked");
  const held = seen({ title: "new", state: { id: 7 }, by: "ann" });
  expect(found({ id: 1 }, held).found).toBe("not checked");
  expect(found({ id: 1, title: "new" }, held, {}).found).toBe("not checked");
  expect(found({ title: "new" }, held).found).toBe("not checked");
});
