/** Edits whose undo has more to restore than bytes: folders, modes and hard links, through the hook and a real server. */
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const svc = `${process.execPath} ${file("bin/svc.js")}`;
const home = tempDir("hook-leftovers-home");
let s: ConsoleServer;
let n = 0;
beforeAll(async () => {
  s = await consoleServer({
    manifests: readFileSync(file("packs/coding-agents/manifests.yaml"), "utf8"),
    policy: readFileSync(file("packs/coding-agents/policy.yaml"), "utf8"),
    config: `console: off\nrollback: {compensator_cmd: "${svc} hook restore --dir ${home}", reader_cmd: "${svc} hook read --dir ${home}"}\n`,
  });
  return () => s.close();
});

function session() {
  const cwd = tempDir("hook-leftovers");
  const session_id = `left-${n++}`;
  const settings = {
    server: s.url,
    key: "agent",
    mode: "enforce",
    protect: [],
    home,
    folder: home,
    snapshot: SNAPSHOT_DEFAULTS,
  } as unknown;
  const whole = () => ({ ...(settings as HookSettings), notes: join(home, "notes") });
  let calls = 0;
  /** An edit as the client makes it, with the hook before and after. */
  const edit = async (name: string, change: (path: string) => void) => {
    const path = join(cwd, name);
    const event = {
      session_id,
      cwd,
      tool_name: "Write",
      tool_input: { file_path: path, content: "x" },
      tool_use_id: `${calls++}`,
    };
    const send = (hook_event_name: string, more: object = {}) =>
      handleEvent("claude-code", JSON.stringify({ ...event, hook_event_name, ...more }), whole);
    expect(await send("PreToolUse")).toEqual({ out: "", err: "", code: 0 });
    change(path);
    expect(await send("PostToolUse", { tool_response: {} })).toEqual({ out: "", err: "", code: 0 });
  };
  const write = (name: string) =>
    edit(name, (path) => {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, "new");
    });
  const plan = async () => (await s.api("auditor", "GET", `/v1/runs/claude-code-${session_id}/plan`)).body;
  return { cwd, edit, write, plan, undone: (more = {}) => undone(`claude-code-${session_id}`, more) };
}

async function undone(run: string, more: object) {
  await s.api("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, retries: 1, ...more });
  const job = async () => (await s.api("auditor", "GET", `/v1/runs/${run}/rollback`)).body.job;
  await until(async () => (await job()).state !== "running", "the job to end");
  return (await job()).report;
}

it("removes the folders that an edit made, and no other", async () => {
  verifies("beyond.hooks.leftovers");
  const { cwd, write, undone } = session();
  mkdirSync(join(cwd, "there"));
  await write("new/deep/a.txt");
  await write("new/deep/b.txt");
  await write("there/c.txt");
  expect(await undone()).toMatchObject({ compensated: [2, 1, 0], failed: [], complete: true });
  expect(readdirSync(cwd)).toEqual(["there"]);
});

it("lists a folder that an edit made and another uses, however often it is undone", async () => {
  verifies("beyond.hooks.leftovers");
  const { cwd, write, undone } = session();
  await write("new/deep/a.txt");
  writeFileSync(join(cwd, "new/foreign.txt"), "foreign");
  const report = await undone({ retries: 2 });
  expect(report).toMatchObject({ compensated: [], failed: [{ step: 0 }], complete: false });
  expect(report.failed[0].error).toContain("the directory contains other files, so it remains");
  expect(readdirSync(cwd, { recursive: true }).sort()).toEqual(["new", "new/foreign.txt"]);
  expect(await undone()).toMatchObject({ failed: [{ step: 0, parts: [{ path: "new" }] }], complete: false });
  rmSync(join(cwd, "new"), { recursive: true });
  expect(await undone()).toMatchObject({ compensated: [0], complete: true });
});

it("finds nothing to do where a person removed such a folder with all in it", async () => {
  verifies("beyond.hooks.leftovers");
  const { cwd, write, undone } = session();
  await write("new/a.txt");
  await write("new/b.txt");
  rmSync(join(cwd, "new"), { recursive: true });
  expect(await undone()).toMatchObject({ compensated: [1, 0], complete: true });
});

it("restores the setuid, setgid and sticky bits", async () => {
  verifies("beyond.hooks.leftovers");
  const { cwd, edit, undone } = session();
  const path = join(cwd, "run.sh");
  writeFileSync(path, "old");
  chmodSync(path, 0o7755);
  await edit("run.sh", () => {
    rmSync(path);
    writeFileSync(path, "new");
  });
  expect(await undone()).toMatchObject({ compensated: [0], complete: true });
  expect([readFileSync(path, "utf8"), statSync(path).mode & 0o7777]).toEqual(["old", 0o7755]);
});

it("restores a file under all its names, and lists one whose names were separated", async () => {
  verifies("beyond.hooks.leftovers");
  const { cwd, edit, undone } = session();
  const [path, other] = [join(cwd, "a.txt"), join(cwd, "other-name.txt")];
  writeFileSync(path, "old");
  chmodSync(path, 0o444);
  linkSync(path, other);
  await edit("a.txt", () => {
    chmodSync(path, 0o644);
    writeFileSync(path, "new");
  });
  expect(await undone()).toMatchObject({ compensated: [0], complete: true });
  expect([readFileSync(other, "utf8"), statSync(path).nlink, statSync(path).mode & 0o777]).toEqual([
    "old",
    2,
    0o444,
  ]);
  await edit("a.txt", () => {
    writeFileSync(`${path}.tmp`, "new");
    renameSync(`${path}.tmp`, path);
  });
  const report = await undone();
  expect(report).toMatchObject({ failed: [{ step: 1 }], complete: false });
  expect(report.failed[0].error).toContain("lost the hard link to its other name");
  expect([readFileSync(path, "utf8"), readFileSync(other, "utf8")]).toEqual(["old", "old"]);
});

it("writes into no file that another put under the name since", async () => {
  verifies("beyond.hooks.leftovers");
  const { cwd, edit, plan, undone } = session();
  const [path, theirs] = [join(cwd, "a.txt"), join(cwd, "theirs.txt")];
  writeFileSync(path, "old");
  await edit("a.txt", () => writeFileSync(path, "new"));
  writeFileSync(theirs, "theirs");
  rmSync(path);
  linkSync(theirs, path);
  const { failed } = await undone();
  expect(failed).toMatchObject([{ step: 0, parts: [{ path: "a.txt", error: "conflict: changed since" }] }]);
  const { current_hash } = (await plan()).actions[0];
  const over = await undone({ overwrite: 0, reason: "ours", current_hash });
  expect(over).toMatchObject({ compensated: [0], complete: true });
  expect([readFileSync(path, "utf8"), readFileSync(theirs, "utf8")]).toEqual(["old", "theirs"]);
  expect(existsSync(theirs)).toBe(true);
});
