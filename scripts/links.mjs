/** Finds what leads nowhere in a folder of static pages: files that are not there, and places that a page does not have. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const OUTSIDE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
const ENTITIES = { "&amp;": "&", "&quot;": '"', "&#39;": "'" };

/** One line for each dead link: the page, the link, and the missing target. Links to other sites are not followed. */
export function deadLinks(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const pages = new Map(
    names
      .filter((name) => name.endsWith(".html"))
      .map((name) => [resolve(folder, name), readPage(folder, name)]),
  );
  return [...pages].flatMap(([page, { links }]) =>
    [...links]
      .map((link) => [link, problemWith(link, page, pages)])
      .filter(([, problem]) => problem !== undefined)
      .map(([link, problem]) => `${relative(folder, page)}: ${link}: ${problem}`),
  );
}

function readPage(folder, name) {
  const page = { places: new Set(["", "top"]), links: new Set() };
  const tags = readFileSync(join(folder, name), "utf8").matchAll(/<[a-z][^>]*>/gi);
  for (const [tag] of tags) {
    for (const [, attribute, value] of tag.matchAll(/\s(id|href|src)="([^"]*)"/g)) {
      const text = value.replaceAll(/&\S+?;/g, (entity) => ENTITIES[entity] ?? entity);
      (attribute === "id" ? page.places : page.links).add(text);
    }
  }
  return page;
}

function problemWith(link, page, pages) {
  if (OUTSIDE.test(link)) return undefined;
  const url = new URL(link, pathToFileURL(page));
  const place = decodeURIComponent(url.hash.slice(1));
  url.hash = "";
  url.search = "";
  const target = fileURLToPath(url);
  const found = statSync(target, { throwIfNoEntry: false });
  if (found === undefined) return "no such file";
  if (found.isDirectory()) return "a folder, where a page has to be";
  return pages.get(target)?.places.has(place) === false ? "no such place in that page" : undefined;
}
