/** The clients that people use, each against one gateway in front of a public tool server. Their table is in the guide. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../support/files.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { acceptTools, CLIENT_KINDS, type Connected } from "./support/clients.ts";
import { type AnyResult, call, type GatewayTest, testGateway } from "./support/gateway.ts";
import { rowsOf, versionOf } from "./support/guide-table.ts";

const MANIFESTS = readFileSync(join(ROOT, "examples/gateway/manifests/memory.yaml"), "utf8");
const POLICY = `
version: 1
rules:
  - {id: search, match: {tool: memory.search_nodes}, action: deny, reason: nobody searches here, hint: read the graph}
  - {id: look, match: {tool: "memory.{create_relations,add_observations}"}, action: require_approval, reason: a person looks at it}
`;
let g: GatewayTest;
let operator: Awaited<ReturnType<GatewayTest["connect"]>>;
beforeAll(async () => {
  const server = join(ROOT, "node_modules/@modelcontextprotocol/server-memory/dist/index.js");
  g = await testGateway({
    upstreams: [
      {
        name: "memory",
        command: process.execPath,
        args: [server],
        env: { MEMORY_FILE_PATH: join(tempDir("clients"), "memory.jsonl") },
        namespace: true,
      },
    ],
    manifests: MANIFESTS,
    policy: POLICY,
    config: { tool_names: "underscores", ask_reason: true },
  });
  operator = await g.connect("admin", { path: "/operator/mcp" });
});

const approvalIn = (text: string) => /apr_[0-9a-f-]{36}/.exec(text)![0];
const decide = async (verb: string, given: AnyResult) =>
  expect((await call(operator, `svc.${verb}`, given)).isError).toBeUndefined();

/** Each column of the table, in order: the action, and the answer that the client must get. */
async function columns(client: Connected, run_id: string, name: string): Promise<Record<string, boolean>> {
  const seen: Record<string, boolean> = {};
  const says = (column: string, text: string, ...parts: string[]) => {
    expect(text, column).toEqual(expect.stringContaining(parts[0]!));
    seen[column] = parts.every((part) => text.includes(part));
  };
  acceptTools(client.names);
  seen["Listed"] = ["memory__read_graph", "memory__create_entities", "svc_await_approval"].every((tool) =>
    client.names.includes(tool),
  );
  const entity = { name, entityType: "person", observations: [] };
  says(
    "Allowed",
    await client.call("memory__create_entities", { entities: [entity], svc_reason: "a test" }),
    name,
  );
  says(
    "Blocked",
    await client.call("memory__search_nodes", { query: name }),
    "nobody searches",
    "hint: read",
  );
  const relations = { relations: [{ from: name, to: name, relationType: "knows" }] };
  const waits = await client.call("memory__create_relations", relations);
  says("Waits", waits, "approval required", "a person looks at it");
  await decide("approve_action", { approval_id: approvalIn(waits), note: "fine" });
  says("Approved", await client.call("memory__create_relations", relations), "knows");
  const contents = (text: string) => ({ observations: [{ entityName: name, contents: [text] }] });
  const approval_id = approvalIn(await client.call("memory__add_observations", contents("too much")));
  await decide("deny_action", { approval_id, note: "less", offer: { args: contents("a little") } });
  says(
    "Denied with an offer",
    await client.call("svc_await_approval", { approval_id, seconds: 0 }),
    "a little",
  );
  says(
    "Denied with an offer",
    await client.call("memory__add_observations", contents("a little")),
    "a little",
  );
  await decide("execute_rollback", { run_id, confirm: true });
  seen["Undone"] = !(await client.call("memory__read_graph", {})).includes(name);
  return seen;
}

describe("a client as published", () => {
  // One after the other: the memory server loses concurrent writes.
  it.each(CLIENT_KINDS)("$title", async ({ title, entry, connect }) => {
    verifies("beyond.clients.matrix");
    const run_id = title.replaceAll(/[^\w]+/g, "-");
    const headers = { authorization: "Bearer agent", "svc-run-id": run_id };
    const client = await connect(g.url, headers);
    try {
      const seen = await columns(client, run_id, `ann-${run_id}`);
      const row = [
        `${title} (\`${entry}\` ${versionOf(entry)})`,
        ...Object.values(seen).map((yes) => (yes ? "yes" : "no")),
      ];
      expect(rowsOf("Client")).toEqual([["Client", ...Object.keys(seen)]]);
      expect(rowsOf(title)).toEqual([row]);
    } finally {
      await client.close();
    }
  });
});
