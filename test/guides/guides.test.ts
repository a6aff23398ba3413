/** The commands of the guides print what the pages show. */
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../support/files.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { commandsOf, filesOf, fitsShown, runGuide, serveDesk, supportDesk } from "./guide-shell.ts";

/** Pages whose every command runs, in order, in a fresh copy of the support desk. */
const PAGES = [
  "approve-calls",
  "backups",
  "contain",
  "grants",
  "halt-calls",
  "incidents",
  "policy",
  "probe",
  "prove-it",
  "resolve-outcomes",
  "retention-and-holds",
  "simulate",
  "tenants",
  "undo-a-run",
  "verify-by-hand",
];

/** Pages that begin in an empty directory, next to the packages that they start. */
const FRESH = ["gateway", "coding-agents"];

/** Pages of the support desk with a running server. */
const SERVED = ["delegate"];

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

  it.each(FRESH)("%s runs as shown, from nothing", (name) => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
    expect(runGuide(`docs/guides/${name}.md`, place)).toBeGreaterThan(0);
  });

  it.each(SERVED)("%s runs as shown, with a server", async (name) => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    cpSync(desk, place, { recursive: true });
    const { settings, stop } = await serveDesk(place);
    expect(runGuide(`docs/guides/${name}.md`, place, settings)).toBeGreaterThan(0);
    expect(await stop()).toBe(0);
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

  it("shows files to save", () => {
    const page = "```yaml file=a.yaml\nx: 1\n```\n\n```yaml\ny: 2\n```\n";
    expect(filesOf(page)).toEqual([{ name: "a.yaml", text: "x: 1\n", line: 1 }]);
  });

  it.each([
    ["halt_095cad6d…  tool x", "halt_f1c064de-dbce  tool x\n", true],
    ["sha256:095cad6d… x", "sha256:f1c064de0000 x", true],
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
