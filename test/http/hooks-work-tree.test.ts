/** What a session reads about the files that a shell command changed, where some were gone before. */
import { execFileSync } from "node:child_process";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");

/** A service that allows everything. */
async function service() {
  const server = createServer((_request, response) => response.end('{"decision":"allow","step":0}'));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() };
}

it("does not hear again of a file that an earlier command removed", async () => {
  verifies("beyond.hooks.work-tree");
  const { url, stop } = await service();
  const [cwd, notes] = [tempDir("hook-cwd"), tempDir("hook-notes")];
  execFileSync(GIT, ["init", "-q"], { cwd });
  for (const name of ["a", "b"]) writeFileSync(join(cwd, name), name);
  execFileSync(GIT, ["add", "."], { cwd });
  writeFileSync(join(cwd, ".git/info/exclude"), "clock\n");
  const settings = {
    server: url,
    key: "k",
    mode: "enforce",
    notes,
    folder: notes,
    snapshot: SNAPSHOT_DEFAULTS,
    protect: [],
    home: cwd,
    config_option: "",
  };
  const told = async (command: string, change: () => void) => {
    // Times of files are coarser than the clock: what went before must be older than what the command does.
    const newest = statSync(cwd).ctimeMs;
    await until(() => {
      writeFileSync(join(cwd, "clock"), "");
      return statSync(join(cwd, "clock")).ctimeMs > newest;
    }, "the clock of files to go on");
    const send = (hook_event_name: string) => {
      const input = { session_id: "s", cwd, hook_event_name, tool_name: "Bash", tool_input: { command } };
      return handleEvent("codex", JSON.stringify(input), () => settings as unknown as HookSettings);
    };
    await send("PreToolUse");
    change();
    return JSON.parse((await send("PostToolUse")).out || "{}").systemMessage;
  };
  const beyond = "svc: beyond undo, changed by this command:";
  expect(await told("mv a c", () => rmSync(join(cwd, "a")))).toBe(`${beyond} a`);
  expect(await told("touch d", () => writeFileSync(join(cwd, "d"), ""))).toBe(`${beyond} d`);
  expect(await told("git restore a", () => writeFileSync(join(cwd, "a"), ""))).toBe(`${beyond} a`);
  expect(await told("mv a c", () => rmSync(join(cwd, "a")))).toBe(`${beyond} a`);
  stop();
});
