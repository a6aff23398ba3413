/** The commands of the guides print what the pages show. */
import { cpSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { commandsOf, fitsShown, runGuide, supportDesk } from "./guide-shell.ts";

/** Pages whose every command runs, in order, in a fresh copy of the support desk. */
const PAGES = ["halt-calls", "resolve-outcomes", "retention-and-holds"];

describe("the guides", () => {
  let desk = "";
  beforeAll(async () => {
    desk = await supportDesk();
  });

  it.each(PAGES)("%s runs as shown", (name) => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    cpSync(desk, place, { recursive: true });
    expect(runGuide(`docs/guides/${name}.md`, place)).toBeGreaterThan(0);
  });
});

describe("a page", () => {
  it("shows commands with their output", () => {
    const page =
      "text\n\n```console\n$ svc a \\\n    --b\none\ntwo\n$ svc c\n```\n\n   ```console\n   $ svc d\n   ```\n";
    expect(commandsOf(page)).toEqual([
      { command: "svc a --b", output: "one\ntwo", line: 4 },
      { command: "svc c", output: "", line: 8 },
      { command: "svc d", output: "", line: 12 },
    ]);
  });

  it.each([
    ["halt_095cad6d…  tool x", "halt_f1c064de-dbce  tool x\n", true],
    ["halt_095cad6d…  tool x", "hold_f1c064de-dbce  tool x\n", false],
    ["a … c", "a b c", true],
    ["a\n...\nz", "a\nb\nc\nz\n", true],
    ["a\n...\nz", "a\nb\n", false],
    ["a (b)", "a (b)", true],
    ["a", "a\nb", false],
  ])("shows %j for %j: %s", (shown, text, fits) => {
    expect(fitsShown(shown, text)).toBe(fits);
  });
});
