import { expect, it } from "vitest";
import { visibleJson } from "./escape-invisible.ts";

it("writes what cannot be seen as JSON escapes, and is read back as it was", () => {
  const value = { to: "a\u202eb\u200b\u0085", tag: "\u{e0041}", lines: "one\ntwo" };
  const shown = visibleJson(value);
  expect(shown).toBe(
    '{\n  "to": "a\\u202eb\\u200b\\u0085",\n  "tag": "\\udb40\\udc41",\n  "lines": "one\\ntwo"\n}',
  );
  expect(JSON.parse(shown)).toEqual(value);
});
