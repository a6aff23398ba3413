/** The reference pages match the code. `--update` generates them again. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../support/files.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { alertsPage } from "../support/reference/alerts.ts";
import { commandPages } from "../support/reference/commands.ts";
import { renderConfigReference } from "../../src/config/reference.ts";
import { errorsPage } from "../support/reference/errors.ts";
import { apiDocument, bodyOf, httpPages } from "../support/reference/http.ts";
import { EXAMPLE_BODIES } from "../support/reference/http-groups.ts";
import { metricsPage } from "../support/reference/metrics.ts";
import { notificationsPage } from "../support/reference/notifications.ts";
import { recordsPage } from "../support/reference/records.ts";
import { keyRows, schemaPage } from "../support/reference/schema.ts";
import { servicesPage } from "../support/reference/services.ts";
import { verifies } from "../support/verifies.ts";

const schemaOf = (name: string) => JSON.parse(readFileSync(join(ROOT, "schemas", name), "utf8"));
/** What a reader sees first: the part of an example that says most. */
const example = (name: string, from: RegExp, to: RegExp) => {
  const text = readFileSync(join(ROOT, "examples/demo", name), "utf8");
  const rest = text.slice(from.exec(text)!.index);
  return rest.slice(0, to.exec(rest)!.index);
};

const PAGES: Record<string, string> = {
  "manifest.md": schemaPage({
    title: "Manifests",
    about:
      "A manifest describes a tool's effect and how to undo it. A file contains a list of manifests. Check files and directories\nwith `svc validate <path>`. For completion in your editor, put\n`# yaml-language-server: $schema=<path>/schemas/manifest.schema.json` on the first line. How to declare an undo: [make a tool undoable](../guides/make-a-tool-undoable.md).",
    from: "schemas/manifest.schema.json",
    schema: schemaOf("manifest.schema.json"),
    example: example("manifests.yaml", /- tool: payments\.refund/, /\n\n- tool: mail\.send/),
  }),
  "policy.md": schemaPage({
    title: "Policies",
    about:
      "A policy decides which calls are allowed, which require approval and which are denied. Check it with\n`svc policy check <file>` and `svc policy test <file>`. For completion in your editor, put\n`# yaml-language-server: $schema=<path>/schemas/policy.schema.json` on the first line. To start: [write a policy](../guides/policy.md). How each section decides: [policy rules](policy-rules.md).",
    from: "schemas/policy.schema.json",
    schema: schemaOf("policy.schema.json"),
    example: example("policy.yaml", /version: 1/, /\nretention:/),
    sections: true,
  }),
  ...(await commandPages()),
  ...httpPages(),
  "alerts.md": alertsPage(),
  "metrics.md": await metricsPage(),
  "notifications.md": notificationsPage(),
  "errors.md": errorsPage(),
  "records.md": recordsPage(),
  "service-packs.md": servicesPage(),
};

test.each(Object.entries(PAGES))("docs/reference/%s is current", async (name, text) => {
  verifies("beyond.first.reference", "beyond.services.table");
  await expect(text).toMatchFileSnapshot(join(ROOT, "docs/reference", name));
});


test("an option that the configuration's reference names is one of a command", () => {
  verifies("beyond.first.reference", "beyond.services.table");
  const commands = Object.entries(PAGES)
    .filter(([name]) => name.startsWith("commands"))
    .map(([, text]) => text)
    .join("\n");
  const named = [...renderConfigReference().matchAll(/`(--[\w-]+)` \|/g)].map(([, option]) => option!);
  const unknown = named.filter((option) => !new RegExp(`${option}[ \`]`).test(commands));
  expect([named.length > 0, unknown]).toEqual([true, []]);
});

test("each example of a request is one that its operation accepts", () => {
  verifies("beyond.first.reference", "beyond.services.table");
  const inPath = { run_id: "ticket-4826", step: 0, tool: "mail.send", version: "3", index: 0 };
  const bad = HTTP_TABLE.filter(({ body }) => body).flatMap(({ op, params, placed }) => {
    const fields = Object.values(params).map(({ field }) => field);
    const path = fields.map((field) => [field, inPath[field as keyof typeof inPath] ?? "id-1"]);
    const read = op.input.safeParse({ ...EXAMPLE_BODIES[op.id], ...Object.fromEntries(path) });
    const misplaced = Object.keys(EXAMPLE_BODIES[op.id] ?? {}).filter((name) => placed.has(name));
    return read.success && misplaced.length === 0 ? [] : [`${op.id}: ${read.error?.message ?? misplaced}`];
  });
  const operations = new Set(HTTP_TABLE.map(({ op }) => op.id));
  expect(bad).toEqual([]);
  expect(Object.keys(EXAMPLE_BODIES).filter((id) => !operations.has(id))).toEqual([]);
});

test("the API description gives each field of a request a meaning", () => {
  verifies("beyond.first.reference", "beyond.services.table");
  const { paths, components } = apiDocument();
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const bare = operations.flatMap((operation) => {
    const rows = [...keyRows(bodyOf(operation, { paths, components }) ?? {})];
    return rows.filter(([, , , meaning]) => meaning === "").map(([key]) => `${operation.operationId} ${key}`);
  });
  expect(bare).toEqual([]);
});
