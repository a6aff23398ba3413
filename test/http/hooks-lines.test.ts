/** What people read of a coding agent's session: its files and commands, in runs, plans and conflicts. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const text = (path: string) => readFileSync(file(path), "utf8");
const command = `${process.execPath} ${file("bin/svc.js")}`;
const home = tempDir("lines-home");
const cwd = tempDir("lines-cwd");

let s: ConsoleServer;
let key: string;
let calls = 0;
beforeAll(async () => {
  s = await consoleServer({
    manifests: text("packs/coding-agents/manifests.yaml"),
    policy: text("packs/coding-agents/policy.yaml"),
    config: `console: login\nrollback: {compensator_cmd: "${command} hook restore --dir ${home}", reader_cmd: "${command} hook read --dir ${home}"}\n`,
  });
  key = join(tempDir("lines-key"), "operator.key");
  writeFileSync(key, "operator", { mode: 0o600 });
  mkdirSync(join(cwd, "src"));
  return () => s.close();
});

const settings = () =>
  ({
    server: s.url,
    key: "agent",
    mode: "enforce",
    notes: join(home, "notes"),
    folder: home,
    protect: [s.folder],
    home,
    config_option: "",
    snapshot: SNAPSHOT_DEFAULTS,
  }) as HookSettings;

async function call(tool_name: string, tool_input: object, act: () => void): Promise<void> {
  const event = { session_id: "lines", cwd, tool_name, tool_input, tool_use_id: `t${calls++}` };
  const send = (hook_event_name: string, more: object = {}) =>
    handleEvent("claude-code", JSON.stringify({ ...event, hook_event_name, ...more }), settings);
  expect((await send("PreToolUse")).code).toBe(0);
  act();
  await send("PostToolUse", { tool_response: {} });
}
const edit = (name: string, content: string | Buffer) =>
  call("Write", { file_path: join(cwd, name), content: "x" }, () => writeFileSync(join(cwd, name), content));
const remote = (...args: string[]) => svc([...args, "--server", s.url, "--key-file", key]);

it("names files and commands, shows text as text, and names the file of a conflict", async () => {
  verifies("beyond.line.pack", "beyond.line.conflicts", "beyond.line.plan-text");
  writeFileSync(join(cwd, "src/a.ts"), "const old = 1;\n");
  writeFileSync(join(cwd, "logo.png"), Buffer.from([0, 255, 1, 2]));
  await edit("src/a.ts", "const now = 2;\n");
  await edit("logo.png", Buffer.from([7]));
  await call("Bash", { command: "npm test" }, () => {});
  await call("Read", { file_path: join(cwd, "src/a.ts") }, () => {});
  const run = "claude-code-lines";
  const { out } = await remote("show", run);
  for (const line of ["Edit src/a.ts", "Edit logo.png", "Run npm test", "Read src/a.ts"])
    expect(out).toMatch(new RegExp(`intended +${line.replaceAll(".", "\\.")}`));
  writeFileSync(join(cwd, "src/a.ts"), "a person's\n");
  writeFileSync(join(cwd, "logo.png"), Buffer.from([9, 0]));
  const plan = (await remote("plan", run)).out;
  expect(plan).toContain("step 0 (Edit src/a.ts): what changed since is left alone");
  expect(plan).toContain("src/a.ts: const old = 1;");
  expect(plan).toContain("src/a.ts: a person's");
  expect(plan).toContain("logo.png: binary, 4 bytes");
  const page = (await (await loggedIn(s.url, "operator")).get(`/console/runs/${run}`)).text;
  expect(page).toContain("const old = 1;");
  expect(page).toContain("binary, 4 bytes");
  const undone = (await remote("rollback", run)).out;
  expect(undone).toContain("failed: 0 (Edit src/a.ts): conflict:");
  expect(readFileSync(join(cwd, "src/a.ts"), "utf8")).toBe("a person's\n");
});
