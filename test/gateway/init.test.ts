/** `svc init`: from a tool server to a gateway before it. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, it, vi } from "vitest";
import { draftManifests } from "../../src/gateway/init/draft-manifest.ts";
import { suggestName } from "../../src/gateway/init/read-tools.ts";
import { manifestText, yamlScalar } from "../../src/gateway/init/render.ts";
import { isUndoOf, parseToolName } from "../../src/gateway/init/verbs.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { FAKE } from "./support/gateway.ts";
import { httpUpstream } from "./support/http-upstream.ts";

vi.setConfig({ testTimeout: 120_000 });

const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));
const MODULES = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol", import.meta.url));

const drafts = (tools: JsonObject[]) =>
  draftManifests(
    tools.map((definition) => ({
      tool: String(definition["name"]),
      name: String(definition["name"]),
      definition,
    })),
    "x",
  );
const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  inputSchema: { type: "object" },
  ...more,
});
const needs = (...names: string[]): JsonObject => ({
  inputSchema: {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, {}])),
    required: names,
  },
});

describe("names", () => {
  it.each([
    ["create_contact", "create", "contact"],
    ["contacts.create", "create", "contact"],
    ["createContact", "create", "contact"],
    ["list-open-issues", "list", "open issue"],
    ["git_commit", null, "git commit"],
    ["search", "search", ""],
  ])("%s", (name, verb, object) => {
    expect(parseToolName(name)).toMatchObject({ verb, object });
  });

  it("find what undoes what, and nothing else", () => {
    const is = (a: string, b: string) => isUndoOf(parseToolName(a), parseToolName(b));
    expect(is("create_contact", "delete_contact")).toBe(true);
    expect(is("add_label", "remove_label")).toBe(true);
    expect(is("subscribe_topic", "unsubscribe_topic")).toBe(true);
    expect(is("create_contact", "delete_account")).toBe(false);
    expect(is("delete_contact", "create_contact")).toBe(false);
    expect(is("get_contact", "delete_contact")).toBe(false);
  });

  it.each([
    [["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.1.1", "/tmp"], "filesystem"],
    [["uvx", "mcp-server-git", "--repository", "."], "git"],
    [["node", "/opt/tools/crm.mjs"], "crm"],
    [["node", "node_modules/@modelcontextprotocol/server-memory/dist/index.js"], "memory"],
    [["python", "-m", "./server.py"], "server"],
    [["node"], "tools"],
  ])("%j is called %s", (words, name) => {
    expect(suggestName({ words })).toBe(name);
  });

  it("of an address come from its host", () => {
    expect(suggestName({ url: "https://mcp.linear.app/sse", words: [] })).toBe("linear");
    expect(suggestName({ url: "http://localhost:3000/mcp", words: [] })).toBe("tools");
  });
});

describe("guesses", () => {
  it("believe what a tool says of itself, and are careful with what it does not say", () => {
    const guessed = drafts([
      tool("fetch_page", { annotations: { openWorldHint: true } }),
      tool("frobnicate", { annotations: { readOnlyHint: true } }),
      tool("get_and_reset", { annotations: { destructiveHint: true } }),
      tool("set_flag", { annotations: { idempotentHint: true } }),
      tool("send_mail"),
      tool("whatever"),
    ]);
    expect(guessed.map(({ effect, permission }) => [effect, permission])).toEqual([
      ["read", "x.read"],
      ["read", "x.read"],
      ["irreversible", "x.destroy"],
      ["idempotent", "x.write"],
      ["irreversible", "x.destroy"],
      ["irreversible", "x.destroy"],
    ]);
    expect(guessed[0]!.external).toBe(true);
  });

  it("never call a tool a read whose description or schema names several actions", () => {
    verifies("beyond.draft.several-actions");
    const says = (name: string, description: string, more: JsonObject = {}) =>
      tool(name, { description, ...more });
    const choice = { inputSchema: { type: "object", properties: { action: { enum: ["get", "delete"] } } } };
    const reading = { annotations: { readOnlyHint: true } };
    const guessed = drafts([
      says("kubectl_context", "Manage contexts: list, get, or set the current context"),
      says("get_config", "Gets or sets a value"),
      says("list_pods", "List pods, or delete them", reading),
      tool("describe_item", choice),
      says("get_user", "Get or list users"),
      says("search_notes", "Search notes and read them"),
    ]);
    expect(guessed.map(({ effect }) => effect)).toEqual([
      ...["irreversible", "irreversible", "irreversible", "irreversible", "read", "read"],
    ]);
  });

  it("propose an undo for every pair of opposites, with how sure they are", () => {
    verifies("beyond.draft.pairs");
    const pairs: [string, string][] = [
      ["create_note", "delete_note"],
      ["add_member", "remove_member"],
      ["start_server", "stop_server"],
      ["enable_flag", "disable_flag"],
      ["disable_flag", "enable_flag"],
      ["install_helm_chart", "uninstall_helm_chart"],
      ["archive_mail", "unarchive_mail"],
      ["unarchive_mail", "archive_mail"],
      ["label_issue", "unlabel_issue"],
      ["port_forward", "stop_port_forward"],
      ["new_page", "close_page"],
    ];
    for (const [done, undo] of pairs) {
      const [drafted] = drafts([tool(done, needs("id")), tool(undo, needs("id"))]);
      expect(drafted!.effect, done).toBe("compensable");
      const args = [{ name: "id", value: "$args.id", why: "the call has it" }];
      expect(drafted!.compensation, done).toMatchObject({ tool: undo, args, confidence: "high" });
    }
    const [unsure] = drafts([tool("create_room", needs("name")), tool("delete_room", needs("room_id"))]);
    expect(unsure!.compensation).toMatchObject({ confidence: "medium" });
    for (const [done, undo] of [
      ["delete_note", "create_note"],
      ["stop_server", "start_server"],
      ["list_port", "stop_port"],
    ])
      expect(drafts([tool(done!, needs("id")), tool(undo!, needs("id"))])[0]!.compensation, done).toBeNull();
  });

  it("see through the server's own name, articles, and ids that are named after their kind", () => {
    verifies("beyond.draft.names");
    const named = drafts([
      tool("slack_list_channels"),
      tool("slack_add_reaction", needs("name")),
      tool("slack_remove_reaction", needs("name")),
    ]);
    expect(named.map(({ effect }) => effect)).toEqual(["read", "compensable", "irreversible"]);
    const articles = drafts([
      tool("API-create-a-comment"),
      tool("API-delete-a-comment", needs("comment_id")),
    ]);
    expect(articles[0]!.compensation).toMatchObject({
      tool: "API-delete-a-comment",
      args: [{ name: "comment_id", value: "$result.id" }],
      confidence: "medium",
    });
    const many = drafts([
      tool("create_record", needs("base")),
      tool("delete_records", needs("base", "recordIds")),
    ]);
    expect(many[0]!.compensation!.args).toMatchObject([{ value: "$args.base" }, { value: ["$result.id"] }]);
    expect(manifestText(many, "x")).toContain('recordIds: ["$result.id"]');
    // An id that a caller can leave out is the result's.
    const optional = {
      inputSchema: { type: "object", properties: { calendarId: {}, eventId: {} }, required: ["calendarId"] },
    };
    const [event] = drafts([
      tool("create-event", optional),
      tool("delete-event", needs("calendarId", "eventId")),
    ]);
    expect(event!.compensation).toMatchObject({
      args: [{ value: "$args.calendarId" }, { value: "$result.id" }],
      confidence: "medium",
    });
    const several = drafts([tool("create_events", needs("id")), tool("delete_event", needs("id"))]);
    expect(several[0]!.compensation).toBeNull();
    // A word that all names begin with isn't a prefix if it is a verb, or the whole name.
    expect(drafts([tool("list_a"), tool("list_b")]).map(({ effect }) => effect)).toEqual(["read", "read"]);
    expect(drafts([tool("kube"), tool("kube_get")]).map(({ effect }) => effect)).toEqual([
      "irreversible",
      "read",
    ]);
  });

  it("undo an update by the values of a read before it", () => {
    verifies("beyond.draft.update-with-read");
    const declared = { outputSchema: { type: "object", properties: { title: {}, state: {} } } };
    const update = tool("update_issue", needs("id", "title", "state"));
    const all = drafts([update, tool("get_issue", { ...needs("id"), ...declared })]);
    expect(all[0]).toMatchObject({
      effect: "reversible",
      compensation: {
        tool: "update_issue",
        kind: "inverse",
        confidence: "medium",
        before: { tool: "get_issue" },
      },
    });
    const text = manifestText(all, "x");
    expect(text).toContain('title: "$before.title"');
    expect(text).toContain("(confidence: medium)");
    const [{ manifest }] = [{ manifest: readManifests([{ file: "x", text }]).all[0]! }];
    expect(manifest.before).toMatchObject({ tool: "get_issue", args: { id: "$args.id" } });
    const unknown = drafts([update, tool("get_issue", needs("id"))])[0]!.compensation;
    expect(unknown).toMatchObject({ confidence: "low" });
    // A read that needs what the update does not have tells nothing.
    expect(drafts([update, tool("get_issue", needs("number"))])[0]!.compensation).toBeNull();
  });

  it("do not call a tool that runs any SQL a read, unless its definition does", () => {
    const sql = { inputSchema: { type: "object", properties: { sql: { type: "string" } } } };
    const described = {
      description: "Run a SQL query",
      inputSchema: { type: "object", properties: { query: { type: "string" } } },
    };
    const guessed = drafts([
      tool("query", sql),
      tool("read_query", described),
      tool("query_readonly", { ...sql, annotations: { readOnlyHint: true } }),
      tool("search", { inputSchema: { type: "object", properties: { query: { type: "string" } } } }),
    ]);
    expect(guessed.map(({ effect }) => effect)).toEqual(["irreversible", "irreversible", "read", "read"]);
  });

  it("propose pairs with the arguments they can find", () => {
    const guessed = drafts([
      tool("create_contact", { ...needs("email"), outputSchema: { type: "object", properties: { id: {} } } }),
      tool("delete_contact", needs("id")),
      tool("add_label", needs("issue", "label")),
      tool("remove_label", needs("issue", "label")),
      tool("create_room", needs("name")),
      tool("delete_room", needs("room_id")),
      tool("create_thing", needs("name")),
      tool("delete_thing", needs("confirmation")),
      tool("move_file", needs("source", "destination")),
    ]);
    const undo = (name: string) => guessed.find(({ tool }) => tool === name)?.compensation;
    expect(undo("create_contact")).toMatchObject({
      tool: "delete_contact",
      args: [{ name: "id", value: "$result.id" }],
    });
    expect(undo("add_label")).toMatchObject({
      tool: "remove_label",
      args: [{ value: "$args.issue" }, { value: "$args.label" }],
    });
    expect(undo("create_room")).toMatchObject({
      args: [{ value: "$result.id", why: expect.stringContaining("check") }],
    });
    expect(undo("create_thing")).toBeNull();
    expect(guessed.find(({ tool }) => tool === "create_thing")?.undo_without_arguments).toBe("delete_thing");
    expect(undo("move_file")).toMatchObject({
      kind: "inverse",
      args: [{ value: "$args.destination" }, { value: "$args.source" }],
    });
  });

  it("survive tools that were named to do harm", () => {
    const bad = ["a: b", "- x", "x\ny: z", "*", "x # guess"];
    const odd = ["#", "'\"", "{", "true", "null", "ünï", "~", "&a", "!t", "%"];
    const text = manifestText(
      drafts([...bad, ...odd].map((name) => tool(name, { description: "---\n- tool: evil" }))),
      "evil\n- tool: injected\n  effect: read",
    );
    const { all } = readManifests([{ file: "m.yaml", text }]);
    expect(odd).toEqual(expect.arrayContaining(all.map((manifest) => manifest.tool)));
    expect(all.length + (text.match(/^# left out: /gm)?.length ?? 0)).toBe(bad.length + odd.length);
    expect(all.every(({ lifecycle }) => lifecycle === "draft")).toBe(true);
    expect(yamlScalar("yes")).toBe('"yes"');
    expect(yamlScalar("files.read")).toBe("files.read");
  });
});

/** Talks to the gateway of a config, started as a client would, from a folder that it knows nothing of. */
async function started<T>(config: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ name: "t", version: "1" });
  const args = [BIN, "gateway", "--config", config];
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, cwd: tmpdir(), stderr: "ignore" }),
  );
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

describe("svc init", () => {
  it("drafts a gateway for the filesystem server that works unchanged", async () => {
    const folder = tempDir("init");
    const work = join(folder, "work");
    mkdirSync(work);
    const from = `node ${join(MODULES, "server-filesystem", "dist", "index.js")} ${work}`;
    const made = await svc(["init", "--from", from, "--name", "files"], { cwd: folder });
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(made.out).toContain("14 tools: 10 read, 4 with a proposed undo, 0 to review");
    expect(made.out).toContain(
      "14 of them as tested with @modelcontextprotocol/server-filesystem 2026.8.31, 0 guessed",
    );
    verifies("beyond.first.schema-line");
    for (const [file, kind] of Object.entries({
      "manifests/files.yaml": "manifest",
      "policy.yaml": "policy",
      "svc.config.yaml": "config",
    })) {
      const [line] = readFileSync(join(folder, file), "utf8").split("\n");
      const [, schema] = /^# yaml-language-server: \$schema=(.*)$/.exec(line!)!;
      expect(JSON.parse(readFileSync(schema!, "utf8")).title, kind).toBeTypeOf("string");
      expect(schema).toContain(`${kind}.schema.json`);
    }
    const manifests = readFileSync(join(folder, "manifests", "files.yaml"), "utf8");
    expect(manifests).not.toContain("# guess:");
    expect(manifests).toMatch(
      /- tool: move_file[\s\S]*kind: inverse\n {4}args:\n {6}source: \$args\.destination/,
    );
    expect((await svc(["validate", "manifests"], { cwd: folder })).out.trim()).toBe(
      "ok: 14 tool manifests valid",
    );
    expect((await svc(["policy", "test", "policy.yaml"], { cwd: folder })).code).toBe(0);

    const again = await svc(["init", "--from", from, "--name", "files"], { cwd: folder });
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("files already exist: ")]);
    expect((await svc(["init", "--from", from, "--name", "files", "--force"], { cwd: folder })).code).toBe(0);

    verifies("beyond.names.init");
    const written = await started(join(folder, "svc.config.yaml"), async (client) => {
      const { tools } = await client.listTools();
      for (const { name } of tools) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      const write = tools.find(({ name }) => name === "write_file");
      expect(write?.inputSchema.properties).toHaveProperty("svc_reason");
      const args = { path: join(work, "a.txt"), content: "hi", svc_reason: "to greet" };
      return client.callTool({ name: "write_file", arguments: args });
    });
    expect(written._meta).toMatchObject({ "svc/decision": "allow" });
    expect(readFileSync(join(work, "a.txt"), "utf8")).toBe("hi");
  });

  it.each([
    ["memory", 9, "create_relations", "delete_relations"],
    ["everything", 13, null, null],
  ])("drafts one for the %s server, started from anywhere", async (name, tools, done, undo) => {
    const folder = tempDir("init-more");
    // As npm lays it out, and by a path that only means something here.
    symlinkSync(MODULES, join(folder, "modules"));
    const from = `node modules/server-${name}/dist/index.js`;
    const made = await svc(["init", "--from", from, "--dir", "gate"], { cwd: folder });
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(made.out).toContain("svc connect claude-code --config gate/svc.config.yaml");
    const file = join(folder, "gate", "manifests", `${name}.yaml`);
    const valid = await svc(["validate", file], { cwd: folder });
    expect(valid.out.trim()).toBe(`ok: ${tools} tool manifests valid`);
    const { all } = readManifests([{ file, text: readFileSync(file, "utf8") }]);
    if (done !== null)
      expect(all.find(({ tool }) => tool === done)).toMatchObject({ compensation: { tool: undo } });
    if (name === "memory")
      expect(readFileSync(join(folder, "gate", "policy.yaml"), "utf8")).toContain(
        "one-a-call-create-entities",
      );
    const offered = await started(join(folder, "gate", "svc.config.yaml"), async (client) => {
      const listed = await client.listTools();
      return listed.tools.map((tool) => tool.name).filter((tool) => !tool.startsWith("svc_"));
    });
    // What runs as a task alone is drafted, and not shown to a client without tasks.
    const shown = all.map(({ tool }) => tool).filter((tool) => tool !== "simulate-research-query");
    expect(offered.sort()).toEqual(shown.sort());
  });

  it("reads an address too, and keeps secrets out of the file", async () => {
    const up = await httpUpstream();
    const folder = tempDir("init-url");
    const args = [
      "init",
      "--from",
      up.url,
      "--name",
      "web",
      "--namespace",
      "--header",
      "X-Api-Key: canary-secret",
    ];
    const made = await svc(args, { cwd: folder });
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(up.seen[0]!.headers["x-api-key"]).toBe("canary-secret");
    const config = readFileSync(join(folder, "svc.config.yaml"), "utf8");
    expect(config).toContain(`X-Api-Key: \${UPSTREAM_X_API_KEY}`);
    expect(config).not.toContain("canary-secret");
    expect(readFileSync(join(folder, "manifests", "web.yaml"), "utf8")).toContain("- tool: web.where");
  });

  it("names the problem in one line", async () => {
    const folder = tempDir("init-bad");
    for (const [args, why] of [
      [["--from", "/no/such/program"], "cannot read the tools"],
      [["--from", `${process.execPath} -e process.exit(3)`], "cannot read the tools"],
      [["--from", "'unclosed"], "a quote is not closed"],
      [["--from", "node x", "--name", "svc"], "--name"],
      [["--from", "node x", "--env", "NOVALUE"], "--env"],
    ] as const) {
      const { code, err } = await svc(["init", ...args], { cwd: folder });
      expect([args, code]).toEqual([args, 1]);
      expect(err).toContain(why);
    }
    expect(existsSync(join(folder, "svc.config.yaml"))).toBe(false);
    expect(FAKE).toContain("fake-upstream");
  });
});
