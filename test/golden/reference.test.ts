/** The pages of the reference are those that the code makes now; `--update` writes them anew. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../support/files.ts";
import { renderConfigReference } from "../../src/config/reference.ts";
import { commandsPage, errorsPage, httpPage, recordsPage, schemaPage } from "../support/reference.ts";
import { verifies } from "../support/verifies.ts";

const schemaOf = (name: string) => JSON.parse(readFileSync(join(ROOT, "schemas", name), "utf8"));
/** What a reader sees first: the part of an example that says most. */
const example = (name: string, from: RegExp, to: RegExp) => {
  const text = readFileSync(join(ROOT, "examples/demo", name), "utf8");
  const rest = text.slice(from.exec(text)!.index);
  return rest.slice(0, to.exec(rest)!.index);
};

const PAGES = {
  "manifest.md": schemaPage({
    title: "Manifests",
    about:
      "A manifest says what a tool does and how to take it back. A file holds a list of them; `svc validate <path>` checks\nfiles and folders, and `# yaml-language-server: $schema=<path>/schemas/manifest.schema.json` on the first line lets\neditors complete. How to think about them: [make your tools reversible](../guides/make-tools-reversible.md).",
    from: "schemas/manifest.schema.json",
    schema: schemaOf("manifest.schema.json"),
    example: example("manifests.yaml", /- tool: payments\.refund/, /\n\n- tool: mail\.send/),
  }),
  "policy.md": schemaPage({
    title: "Policies",
    about:
      "A policy says which calls pass, wait for a person or are refused. `svc policy check <file>` and `svc policy test <file>`\ncheck one; `# yaml-language-server: $schema=<path>/schemas/policy.schema.json` on the first line lets editors complete.\nWhat each part does, with a cookbook: [policies](../guides/policy.md).",
    from: "schemas/policy.schema.json",
    schema: schemaOf("policy.schema.json"),
    example: example("policy.yaml", /version: 1/, /\nretention:/),
  }),
  "commands.md": await commandsPage(),
  "http.md": httpPage(),
  "errors.md": errorsPage(),
  "records.md": recordsPage(),
};

test.each(Object.entries(PAGES))("docs/reference/%s is current", async (name, text) => {
  verifies("beyond.first.reference");
  await expect(text).toMatchFileSnapshot(join(ROOT, "docs/reference", name));
});

test("an option that the configuration's reference names is one of a command", () => {
  verifies("beyond.first.reference");
  const named = [...renderConfigReference().matchAll(/`(--[\w-]+)` \|/g)].map(([, option]) => option!);
  const unknown = named.filter((option) => !new RegExp(`${option}[ \`]`).test(PAGES["commands.md"]));
  expect([named.length > 0, unknown]).toEqual([true, []]);
});
