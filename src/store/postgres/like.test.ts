import { expect, it } from "vitest";
import { likePattern } from "./like.ts";

it("escapes what LIKE would take for more than itself", () => {
  expect(likePattern("100%_\\")).toEqual({ pattern: "%100\\%\\_\\\\%", exact: true });
  expect(likePattern("")).toEqual({ pattern: "%%", exact: true });
});

it("leaves to the caller what ILIKE cannot fold", () => {
  expect(likePattern("Grüße")).toEqual({ pattern: "%Gr%%e%", exact: false });
});

it("knows that no line has a control character", () => {
  expect(likePattern("a\nb")).toBeUndefined();
  expect(likePattern("\0")).toBeUndefined();
});
