/** An MCP client works on files through the gateway, and all of it is undone: node examples/gateway/run.mjs */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SVC, story } from "../stage.mjs";

await story(async (stage) => {
  const workspace = join(stage.folder, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "notes.txt"), "buy cake\nbread\ntea\r\n");
  writeFileSync(join(workspace, "photo.raw"), Buffer.from([0xff, 0xd8, 0xff, 0x00, 0x0a]));
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

  const admin = await connect(`${url}/operator/mcp`, adminKey);
  const path = (name) => join(workspace, name);
  const show = (when) => {
    const files = readdirSync(workspace, { recursive: true }).sort();
    const held = (name) =>
      statSync(path(name)).isDirectory() ? "(folder)" : JSON.stringify(readFileSync(path(name), "latin1"));
    stage.say(`${when}: ${files.map((name) => `${name} ${held(name)}`).join(", ")}`);
  };

  /** Calls tools as any MCP client does, in a run of its own; the decision and the run stand in an answer's _meta. */
  async function work(calls) {
    const agent = await connect(`${url}/mcp`, agentKey);
    let run;
    for (const [tool, args] of calls) {
      const { isError, content, _meta } = await agent.callTool({ name: tool, arguments: args });
      run = _meta["svc/run_id"];
      stage.say(`${tool}: ${_meta["svc/decision"]}${isError ? ` (${content[0].text})` : ""}`);
    }
    await agent.close();
    return run;
  }
  async function takeBack(run) {
    stage.say();
    stage.say("svc.execute_rollback, as the operator:");
    const undo = { name: "svc.execute_rollback", arguments: { run_id: run, confirm: true } };
    const { compensated, failed, complete } = (await admin.callTool(undo)).structuredContent;
    if (compensated.length > 0) stage.say(`steps ${compensated.join(", ")} undone`);
    for (const { step, error } of failed) stage.say(`step ${step} left alone: ${error}`);
    stage.say(`complete: ${complete}`);
  }

  show("before");
  const run = await work([
    ["files.read_text_file", { path: path("notes.txt") }],
    // "cake" stands in the first line already: the edit the other way round would change that one.
    ["files.edit_file", { path: path("notes.txt"), edits: [{ oldText: "tea", newText: "cake" }] }],
    ["files.edit_file", { path: path("notes.txt"), edits: [{ oldText: "bread\n", newText: "" }] }],
    ["files.write_file", { path: path("photo.raw"), content: "no photo any more" }],
    ["files.create_directory", { path: path("new/plans") }],
    ["files.write_file", { path: path("new/plans/todo.txt"), content: "drink it\n" }],
    ["files.move_file", { source: path("notes.txt"), destination: path("new/list.txt") }],
    ["files.write_file", { path: path("notes.txt"), content: "moved\n" }],
  ]);
  show("after");
  await takeBack(run);
  show("after undo");

  stage.say();
  stage.say("Another run, and a colleague writes before the undo:");
  const second = await work([
    ["files.write_file", { path: path("photo.raw"), content: "gone" }],
    ["files.write_file", { path: path("notes.txt"), content: "gone\n" }],
  ]);
  writeFileSync(path("notes.txt"), "buy wine, says the colleague\n");
  await takeBack(second);
  show("after undo");

  stage.say();
  await stage.trail(second);
  await admin.close();
});

async function connect(url, key) {
  const client = new Client({ name: "example", version: "1.0.0" });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}
