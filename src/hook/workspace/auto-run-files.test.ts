/** The lists of the reference against the code's. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { textLists } from "../../../test/support/text-lists.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { createPathGuard, REFUSED_CLIENT_FILES } from "../path-guard.ts";
import { AUTO_RUN_FILES, CLIENT_NOTES, foldPath, isAutoRunFile, wordsOf } from "./auto-run-files.ts";

const page = readFileSync(new URL("../../../docs/reference/coding-agents-rules.md", import.meta.url), "utf8");

const blockAfter = (sentence: string) => textLists(page, sentence);

const listed = (lists: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, wordsOf(list)]));

describe("the reference has the whole list of", () => {
  it("files whose change needs approval", () => {
    verifies("beyond.hooks.documented-lists");
    expect(blockAfter("A change of these files needs approval")).toEqual(listed(AUTO_RUN_FILES));
  });

  it("notes in the clients' directories", () => {
    verifies("beyond.hooks.documented-lists");
    expect(blockAfter("except these instructions, plans and notes")).toEqual(listed(CLIENT_NOTES));
  });

  it("files of the clients that are refused", () => {
    verifies("beyond.hooks.documented-lists");
    expect(blockAfter("Every call that touches one of these is refused")).toEqual(REFUSED_CLIENT_FILES);
  });
});

describe("a file of the list", () => {
  const sample = (end: string) => end.replaceAll("**", "a/b").replaceAll("*", "x");
  const paths = Object.values(AUTO_RUN_FILES)
    .flatMap(wordsOf)
    .map((end) => (end.startsWith("/") ? sample(end) : `/home/ann/shop/${sample(end)}`));

  it.each(paths)("runs on its own, in any letter case: %s", (path) => {
    verifies("beyond.hooks.unasked-files");
    for (const spelling of [path, path.toUpperCase()]) expect(isAutoRunFile(foldPath(spelling))).toBe(true);
  });

  it("of a client runs on its own, except its notes", () => {
    verifies("beyond.hooks.unasked-files");
    for (const [folder, notes] of Object.entries(CLIENT_NOTES)) {
      expect(isAutoRunFile(foldPath(`/home/ann/${folder}/any/thing`))).toBe(true);
      for (const note of wordsOf(notes))
        expect(isAutoRunFile(foldPath(`/home/ann/${folder}/${note.endsWith("/") ? `${note}x` : note}`))).toBe(
          false,
        );
      expect(isAutoRunFile(foldPath(`/home/ann/${folder}/worktrees/x/.claude/skills/a`))).toBe(true);
    }
  });

  it("of a client is refused where it decides or says what ran", () => {
    verifies("beyond.hooks.protected");
    const guard = createPathGuard({ home: "/home/ann", protect: [], authority: "127.0.0.1:1" });
    for (const end of Object.values(REFUSED_CLIENT_FILES).flat()) {
      const path = end.startsWith("/") ? `${end}/x` : `/home/ann/${end.replaceAll("*", "x")}`;
      expect([path, guard.path(path, "/src/shop")]).toEqual([path, expect.any(String)]);
    }
  });
});
