/** A file that is made whole or not at all, and never in the place of another. */
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../test/support/tmp.ts";
import { createOutFile } from "./atomic-file.ts";

/** As on a file system that knows one name for a file only. */
const noLinks = () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" }));

for (const [where, link] of [
  ["with links", undefined],
  ["without links", noLinks],
] as const) {
  describe(`createOutFile ${where}`, () => {
    it("gives the name only to a complete file", async () => {
      const path = join(tempDir("out"), "x.json");
      async function* parts() {
        expect(existsSync(path)).toBe(false);
        yield "one";
        expect(existsSync(path)).toBe(false);
        yield "two";
      }
      expect(await createOutFile(path, parts(), link)).toBe(true);
      expect(readFileSync(path, "utf8")).toBe("onetwo");
    });

    it("leaves nothing behind when it fails", async () => {
      const folder = tempDir("out");
      const failing = (async function* () {
        yield "one";
        throw new Error("no more");
      })();
      await expect(createOutFile(join(folder, "x.json"), failing, link)).rejects.toThrow("no more");
      expect(readdirSync(folder)).toEqual([]);
    });

    it("leaves existing files alone, and follows no link", async () => {
      const folder = tempDir("out");
      writeFileSync(join(folder, "taken"), "mine");
      symlinkSync(join(folder, "target"), join(folder, "link"));
      for (const name of ["taken", "link"])
        expect(await createOutFile(join(folder, name), ["yours"], link)).toBe(false);
      expect(readFileSync(join(folder, "taken"), "utf8")).toBe("mine");
      expect(readdirSync(folder).sort()).toEqual(["link", "taken"]);
    });
  });
}
