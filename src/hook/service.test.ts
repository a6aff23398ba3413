import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { tempDir } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import { handleEvent } from "./hook.ts";
import type { HookSettings } from "./settings.ts";

afterEach(() => vi.useRealTimers());

const home = tempDir("service");
const settingsOf = (port: number) =>
  ({
    server: `http://127.0.0.1:${port}`,
    key: "agent",
    mode: "enforce",
    notes: "/nowhere",
    folder: home,
    protect: [] as string[],
    home,
    config_option: "",
  }) as HookSettings;

const asking = (tool_name: string, tool_input: object): string =>
  JSON.stringify({ session_id: "s", cwd: "/src", hook_event_name: "PreToolUse", tool_name, tool_input });

it("gives up an answer that trickles in, before the client gives up the hook", async () => {
  verifies("beyond.hooks.fails-closed");
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const service = createServer((_request, response) => {
    response.writeHead(200, { "content-length": 1_000_000 });
    response.write(" ", () => vi.advanceTimersByTime(6_000));
    const more = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(more));
  });
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
  const settings = settingsOf((service.address() as AddressInfo).port);
  const said = await handleEvent("codex", asking("Bash", { command: "ls" }), () => settings);
  expect(said).toMatchObject({
    code: 2,
    out: "",
    err: expect.stringContaining("cannot be reached (no answer within 6 s)"),
  });
  service.closeAllConnections();
  service.close();
});

it("refuses a call that was made up to be judged for longer than the client waits", async () => {
  verifies("beyond.hooks.fails-closed");
  const made_up = asking("mcp__db__query", { text: "0/".repeat(400_000) });
  const said = await handleEvent("codex", made_up, () => settingsOf(1));
  expect(said).toMatchObject({
    code: 2,
    out: "",
    err: "svc: the call could not be classified within 4 s, so it is refused",
  });
});

it("reads no more of an answer than a decision can be long, and refuses the call", async () => {
  verifies("beyond.hooks.fails-closed");
  let sent = 0;
  const chunk = Buffer.alloc(262_144, " ");
  const service = createServer((_request, response) => {
    const more = () => {
      while (!response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) return void response.once("drain", more);
      }
    };
    more();
  });
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
  const settings = settingsOf((service.address() as AddressInfo).port);
  const said = await handleEvent("codex", asking("Bash", { command: "ls" }), () => settings);
  expect(said).toMatchObject({
    code: 2,
    out: "",
    err: expect.stringContaining("its answer is longer than 1048576 bytes"),
  });
  // What the connection holds on its way is not read.
  expect(sent).toBeLessThan(64 * 1_048_576);
  service.closeAllConnections();
  service.close();
});
