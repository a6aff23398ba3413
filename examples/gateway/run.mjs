/** An MCP client works on files through the gateway, and all of it is taken back: node examples/gateway/run.mjs */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SVC, story } from "../stage.mjs";

await story(async (stage) => {
  const workspace = join(stage.folder, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "notes.txt"), "buy milk\n");
  Object.assign(stage.env, {
    WORKSPACE: workspace,
    SVC_CONFIG: join(import.meta.dirname, "svc.config.yaml"),
    SVC_DATA: join(stage.folder, "data"),
    SVC_KEYS: join(stage.folder, "keys.json"),
  });
  const agentKey = await stage.key("my-agent", "agent", "files.*");
  const adminKey = await stage.key("me", "admin");
  const gateway = stage.start(process.execPath, [
    SVC,
    "gateway",
    "--port",
    "0",
    "--keys",
    stage.env.SVC_KEYS,
  ]);
  const [, url] = await gateway.heard(/listening on (http:\S+)\/mcp/);

  const agent = await connect(`${url}/mcp`, agentKey);
  const admin = await connect(`${url}/operator/mcp`, adminKey);
  let run;

  /** Calls a tool as any MCP client does; the decision and the run stand in the answer's _meta. */
  async function call(tool, args) {
    const { isError, content, _meta } = await agent.callTool({ name: tool, arguments: args });
    run = _meta["svc/run_id"];
    stage.say(`${tool}: ${_meta["svc/decision"]}${isError ? ` (${content[0].text})` : ""}`);
  }
  const show = (when) => {
    const files = readdirSync(workspace).sort();
    const text = files.map(
      (name) => `${name} ${JSON.stringify(readFileSync(join(workspace, name), "utf8"))}`,
    );
    stage.say(`${when}: ${text.join(", ")}`);
  };
  const path = (name) => join(workspace, name);

  show("before");
  await call("files.read_text_file", { path: path("notes.txt") });
  await call("files.edit_file", {
    path: path("notes.txt"),
    edits: [{ oldText: "milk", newText: "champagne" }],
  });
  await call("files.write_file", { path: path("todo.txt"), content: "drink it\n" });
  await call("files.move_file", { source: path("notes.txt"), destination: path("list.txt") });
  // Two edits could not be undone by one: the policy says no, and why.
  const twice = [
    { oldText: "buy", newText: "steal" },
    { oldText: "champagne", newText: "wine" },
  ];
  await call("files.edit_file", { path: path("list.txt"), edits: twice });
  show("after");

  stage.say();
  stage.say("svc.execute_rollback, as the operator:");
  const undone = await admin.callTool({
    name: "svc.execute_rollback",
    arguments: { run_id: run, confirm: true },
  });
  const { compensated, complete } = undone.structuredContent;
  stage.say(`steps ${compensated.join(", ")} undone, complete: ${complete}`);
  show("taken back");

  stage.say();
  await stage.trail(run);
  await Promise.all([agent.close(), admin.close()]);
});

async function connect(url, key) {
  const client = new Client({ name: "example", version: "1.0.0" });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}
