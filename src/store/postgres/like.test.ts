import { expect, it } from "vitest";
import { likePattern } from "./like.ts";

it("escapes what LIKE would take for more than itself", () => {
  expect(likePattern("100%_")).toBe("%100\\%\\_%");
  expect(likePattern("")).toBe("%%");
});

it("leaves to the caller what ILIKE cannot fold", () => {
  expect(likePattern("Grüße")).toBe("%Gr%%e%");
});

it("looks for a text as a line spells it", () => {
  expect(likePattern('a\n"\\')).toBe('%a\\\\n\\\\"\\\\\\\\%');
  expect(likePattern("\0")).toBe("%\\\\u0000%");
});
