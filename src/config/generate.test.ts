/** The generated files in the repository are those that the code makes now; `-u` writes them again. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseDocument } from "yaml";
import { channelsSchema } from "../notify/channels/table.ts";
import { renderConfigReference } from "./reference.ts";
import { generateSchemas } from "./schemas.ts";
import { settingRows } from "./settings.ts";

const ROOT = join(import.meta.dirname, "../..");
const SCHEMAS = generateSchemas({ channels: channelsSchema });

test.each(Object.entries(SCHEMAS))("schemas/%s is current", async (name, text) => {
  await expect(text).toMatchFileSnapshot(join(ROOT, "schemas", name));
});

test("docs/reference/config.md is current", async () => {
  await expect(renderConfigReference()).toMatchFileSnapshot(join(ROOT, "docs/reference/config.md"));
});

test("the reference names every key, variable and option", () => {
  const text = renderConfigReference();
  for (const { key, row } of settingRows()) {
    expect(text).toContain(`\`${key}\``);
    if (row.env) expect(text).toContain(`\`${row.env}\``);
    if (row.flag && !row.flag_inside) expect(text).toContain(`\`--${row.flag}\``);
    expect(row.about).toMatch(/\.$/);
  }
});

test("no two keys share a variable or an option", () => {
  for (const kind of ["env", "flag"] as const) {
    const names = settingRows().flatMap(({ row }) => row[kind] ?? []);
    expect(new Set(names).size).toBe(names.length);
  }
});

test("the manifest schema accepts the examples and refuses what validation refuses", async () => {
  const schema = JSON.parse(SCHEMAS["manifest.schema.json"]!);
  expect(schema.items.required).toEqual(["tool", "effect", "permission"]);
  expect(schema.items.additionalProperties).toBe(false);
  const verification = schema.items.properties.verification.anyOf[0];
  expect(verification.required).toEqual(["tool", "expect"]);
  const folder = join(ROOT, "examples/manifests");
  for (const name of await readdir(folder)) {
    const entries = parseDocument(await readFile(join(folder, name), "utf8")).toJS() as Record<
      string,
      unknown
    >[];
    for (const entry of entries) {
      for (const key of Object.keys(entry)) expect(Object.keys(schema.items.properties)).toContain(key);
    }
  }
});
