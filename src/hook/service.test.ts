import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { handleEvent } from "./hook.ts";
import type { HookSettings } from "./settings.ts";

afterEach(() => vi.useRealTimers());

it("gives up an answer that trickles in, before the client gives up the hook", async () => {
  verifies("beyond.hooks.fails-closed");
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const service = createServer((_request, response) => {
    response.writeHead(200, { "content-length": 1_000_000 });
    response.write(" ", () => vi.advanceTimersByTime(7_000));
    const more = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(more));
  });
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
  const settings = {
    server: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    key: "agent",
    mode: "enforce",
    notes: "/nowhere",
    protect: [] as string[],
    home: "/home/ann",
    config_option: "",
  } as HookSettings;
  const event = {
    session_id: "s",
    cwd: "/src",
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command: "ls" },
  };
  const { out } = await handleEvent("codex", JSON.stringify(event), () => settings);
  expect(JSON.parse(out).hookSpecificOutput).toMatchObject({
    permissionDecision: "deny",
    permissionDecisionReason: expect.stringContaining("cannot be reached (no answer within 7 s)"),
  });
  service.closeAllConnections();
  service.close();
});
