/** A damaged manifest file gives a list of problems, never a crash, a stack or a broken line. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { manifestProblems } from "./load.ts";

const FOLDER = join(import.meta.dirname, "../../../examples/manifests");
const TEXTS = readdirSync(FOLDER).map((name) => readFileSync(join(FOLDER, name), "utf8"));
const PIECES = [
  "[",
  "]",
  "{",
  "}",
  ": ",
  "\n",
  "\t",
  "- ",
  "*a",
  "&a ",
  "!x ",
  "~",
  "1e999",
  "'",
  '"',
  "#",
  "|\n",
  "\0",
  "\u200b",
];
PIECES.push(
  "<<: *a",
  "? ",
  "---\n",
  "%YAML 1.1\n---\n",
  "$args.",
  "__proto__: ",
  ".inf",
  "9007199254740993",
  "\ud800",
);

const edit = fc.record({ at: fc.nat(3_000), cut: fc.nat(30), put: fc.constantFrom(...PIECES) });
const mangled = fc
  .tuple(fc.constantFrom(...TEXTS), fc.array(edit, { minLength: 1, maxLength: 4 }))
  .map(([text, edits]) =>
    edits.reduce((now, { at, cut, put }) => now.slice(0, at) + put + now.slice(at + cut), text),
  );

test("mangled examples", () => {
  fc.assert(
    fc.property(mangled, (text) => {
      for (const line of manifestProblems(text, "m.yaml")) {
        expect(line).toMatch(/^m\.yaml:[1-9]\d*: \S.*$/);
        expect(line).not.toMatch(/undefined|\[object/);
      }
    }),
    { numRuns: 60 },
  );
});
