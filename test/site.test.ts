/** The documentation site, built as `npm run site` does, and the check of its links. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { deadLinks } from "../scripts/links.mjs";
import { filesUnder, ROOT } from "./support/files.ts";
import { tempDir } from "./support/tmp.ts";
import { verifies } from "./support/verifies.ts";

it("builds, with every page and every public entry, and without a dead link", async () => {
  verifies("beyond.first.site");
  const site = tempDir("site");
  // It ends with 1 where a link is dead, and says which.
  await promisify(execFile)(process.execPath, [join(ROOT, "scripts/site.mjs"), site]);
  for (const page of filesUnder("docs", ".md"))
    expect(existsSync(join(site, page.replace(/\.md$/, ".html"))), page).toBe(true);
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  for (const entry of Object.keys(exports).filter((path) => path !== "./package.json")) {
    const module = join("takeback", entry).replaceAll("/", "_");
    expect(existsSync(join(site, "modules", `${module}.html`)), entry).toBe(true);
  }
  // Pages of the repository lead to one another, and what they show of it is in the site.
  const first = readFileSync(join(site, "index.html"), "utf8");
  expect(first).toContain('href="docs/guides/policy.html"');
  expect(first).toContain('src="media/demo.png"');
});

it("leads to every page of the documents from another one", () => {
  verifies("beyond.first.site");
  const pages = filesUnder("docs", ".md");
  const linked = ["README.md", "CONTRIBUTING.md", ...pages].flatMap((from) =>
    [...readFileSync(join(ROOT, from), "utf8").matchAll(/\]\(([^)#:]+\.md)/g)]
      .map(([, to]) => posix.join(dirname(from), to!))
      .filter((to) => to !== from),
  );
  expect(pages.filter((page) => !linked.includes(page))).toEqual([]);
});

it("finds files, folders and places that are not there, and nothing else", () => {
  verifies("beyond.first.site");
  const site = tempDir("links");
  mkdirSync(join(site, "docs"));
  const good =
    '<a href="docs/b.html#a-place"><img src="c.png"><a href="#here"><h1 id="here"><a href="https://other.example/x">';
  writeFileSync(
    join(site, "a.html"),
    `${good} <a href="#gone"><a href="docs"><a href="d.html">&lt;a href="no-tag"`,
  );
  writeFileSync(
    join(site, "docs/b.html"),
    '<p class="x" id="a-place"><a href="../a.html#&#39;"><a href="../a.html?q#here">',
  );
  writeFileSync(join(site, "c.png"), "");
  expect(deadLinks(site).sort()).toEqual([
    "a.html: #gone: no such place in that page",
    "a.html: d.html: no such file",
    "a.html: docs: a folder, where a page has to be",
    "docs/b.html: ../a.html#': no such place in that page",
  ]);
});
