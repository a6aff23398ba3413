/** Forms and empty places of every page: no field has its neighbour's label, and an empty place has one next action. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { verifies } from "../support/verifies.ts";
import { type Client, loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let s: ConsoleServer;
let admin: Client;
beforeAll(async () => {
  s = await consoleServer({ config: "console: login\ncapture: {enabled: true}\n" });
  admin = await loggedIn(s.url, "admin");
});
afterAll(() => s.close());

const PAGES = CONSOLE_ROUTES.filter(({ method, path }) => method === "GET" && !path.includes(":"))
  .map(({ path }) => `/console${path === "/" ? "" : path}`)
  .filter((path) => !/bundle|key$|checkpoint|report$|edge$/.test(path));

/** The words before the control of a field, or after it in a check box. */
const texts = (html: string, pattern: RegExp) =>
  [...html.matchAll(pattern)].map(([, inner]) => {
    const [before = "", ...after] = inner!
      .split(/<(?:input|select|textarea)\b[^>]*>/)
      .map((part) => part.replace(/<[^>]*>/g, "").trim());
    return before === "" ? after.join("") : before;
  });

it("gives no two neighbouring fields, facts or columns one label", async () => {
  verifies("beyond.polish.labels");
  const twins: string[] = [];
  for (const page of PAGES) {
    const { status, text } = await admin.get(page);
    expect([page, status]).toEqual([page, 200]);
    const parts =
      text.match(/(?:<form[\s\S]*?<\/form>\s*)+|<dl[\s\S]*?<\/dl>|<thead[\s\S]*?<\/thead>/g) ?? [];
    for (const part of parts) {
      const labels = texts(part, /<(?:label|dt|th)\b[^>]*>([\s\S]*?)<\/(?:label|dt|th)>/g);
      for (const [i, label] of labels.entries())
        if (i > 0 && label !== "" && label === labels[i - 1]) twins.push(`${page}: ${label}`);
    }
  }
  expect(twins).toEqual([]);
});

it("offers at most one next action in an empty place", async () => {
  verifies("beyond.polish.empty-action");
  const wrong: string[] = [];
  let places = 0;
  for (const page of PAGES) {
    const { text } = await admin.get(page);
    for (const place of text.match(/<div class="empty">[\s\S]*?<\/div>/g) ?? []) {
      places++;
      // The numbered steps of an empty service are a guide.
      if (place.includes("<ol")) continue;
      const actions = place.match(/<(?:a|button)\b/g)?.length ?? 0;
      if (actions > 1) wrong.push(`${page}: ${actions} in ${place.replace(/<[^>]*>/g, " ")}`);
    }
  }
  expect(places).toBeGreaterThan(5);
  expect(wrong).toEqual([]);
});
