/** Bundles made to exhaust a verifier: each of the three verifiers reports that the bundle does not hold. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { freshKey } from "./support/bundles.ts";
import { askBrowser, askPython, askTypeScript } from "./support/verifiers.ts";

/** Over what fits the stack of a pattern that matches letter by letter: eight bytes a letter, 64 MiB of them. */
const MANY = 9_000_000;
const LETTERS = "a".repeat(MANY);
const HASH = "0".repeat(64);

const bundle = (more: string, records = ""): string =>
  `{"format":"svc-bundle","version":1,"kind":"ledger","exported_ms":1,"head":"${HASH}","count":0,"tree":{"size":0,"root":"${HASH}"},"key_id":"0000000000000000","records":[${records}]${more}}`;
const record = (more: string): string =>
  `{"seq":0,"ts_ms":1,"event":"x","prev":"${HASH}","hash":"${HASH}"${more}}`;
/** One record a line, as svc writes it. */
const laidOut = (line: string): string =>
  bundle(`,"signature":"x"`, "RECORDS").replace("RECORDS]", () => `\n${line}\n]`);

const CRAFTED: Readonly<Record<string, () => string>> = {
  "a signature without end": () => bundle(`,"signature":"${LETTERS}"`),
  "a signature of escapes": () => bundle(`,"signature":"${"\\n".repeat(MANY)}"`),
  "a name without end": () => bundle(`,"${LETTERS}":1`),
  "a number without end": () => bundle(`,"signature":${"1".repeat(MANY)}`),
  "nesting without end": () => bundle(`,"signature":${"[".repeat(MANY)}`),
  "a text in a record": () => bundle(`,"signature":"x"`, record(`,"detail":"${LETTERS}"`)),
  "a list in a record": () => bundle(`,"signature":"x"`, record(`,"detail":[${"1,".repeat(MANY / 100)}1]`)),
  "a name in a record": () => bundle(`,"signature":"x"`, record(`,"${LETTERS}":1`)),
  "a text in a line": () => laidOut(record(`,"detail":"${LETTERS}"`)),
  "quotes without end": () => bundle(`,"signature":"${'\\"'.repeat(MANY)}"`),
  "records without end": () => bundle(`,"signature":"x"`, `${"1,".repeat(MANY / 100)}1`),
  "a proof without end": () => bundle(`,"signature":"x","proofs":{"0":["${LETTERS}"]}`),
};

describe("a bundle that was made to exhaust its reader", () => {
  it.each(Object.keys(CRAFTED))(
    "is INVALID to all three: %s",
    async (name) => {
      const folder = tempDir("huge");
      const file = join(folder, "bundle.json");
      writeFileSync(file, CRAFTED[name]!());
      const key = freshKey();
      const pub = join(folder, "k.pub");
      writeFileSync(pub, key.pem);
      for (const ask of [
        () => askTypeScript("bundle", [file], key),
        () => askBrowser("bundle", [file], key),
        () => askPython("bundle", [file], pub),
      ]) {
        const problem = (await ask()).get(file);
        expect(problem).toEqual(expect.any(String));
        expect(problem).not.toMatch(/call stack|RangeError|Traceback|Error:|Invalid string length/i);
      }
    },
    180_000,
  );
});
