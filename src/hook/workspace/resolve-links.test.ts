/** Resolving many paths at once gives what resolving each one gives. */
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { createLinkResolver, resolveLinks } from "./resolve-links.ts";

it("resolves every kind of path like one at a time", () => {
  verifies("beyond.hooks.unasked-files");
  const top = realpathSync(tempDir("links"));
  const at = (path: string) => `${top}/${path}`;
  mkdirSync(at("real/inner"), { recursive: true });
  writeFileSync(at("real/file"), "");
  const links = {
    dir: "real",
    file: "real/file",
    again: "dir",
    nowhere: "missing/target",
    "real/inner/up": "..",
    self: "self",
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, at(name));
  const names = ["real", "dir", "file", "again", "nowhere", "self", "missing", "real/file", "real/inner/up"];
  const ends = ["", "/", "/inner", "/inner/up/file", "/x/y", "/../real", "/."];
  const paths = [...names.flatMap((name) => ends.map((end) => at(`${name}${end}`))), "/", join(top, "x/y/z")];
  const resolve = createLinkResolver();
  for (const path of paths) expect([path, resolve(path)]).toEqual([path, resolveLinks(path)]);
});
