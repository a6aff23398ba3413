/** The resident process asks the service over one connection, and over HTTP where there is none. */
import { writeFileSync } from "node:fs";
import { createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { hookedPlace } from "../support/hooked.ts";
import { verifies } from "../support/verifies.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A place whose hook reaches the service through a relay, which can cut connections and refuse the stream. */
async function relayed() {
  const place = await hookedPlace("claude-code");
  const port = Number(new URL(place.server.url).port);
  const requests: string[] = [];
  const open = new Set<Socket>();
  const relay = { streams: true };
  const server = createServer((from) => {
    open.add(from);
    from.on("error", () => from.destroy()).on("close", () => open.delete(from));
    from.once("data", (first) => {
      const [line = ""] = first.toString("latin1").split("\r\n");
      requests.push(line.replace(" HTTP/1.1", ""));
      if (!relay.streams && line.startsWith("GET /v1/stream "))
        return from.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      const to = dial(port, "127.0.0.1");
      to.on("error", () => from.destroy()).on("close", () => from.destroy());
      from.on("close", () => to.destroy());
      to.write(first);
      from.pipe(to).pipe(from);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(
    () => place.server.stop(),
    () => server.close(),
    () => {
      for (const socket of open) socket.destroy();
    },
  );
  const { port: own } = server.address() as { port: number };
  place.change({ server: `http://127.0.0.1:${own}` });
  return {
    ...place,
    requests,
    relay,
    cut: () => {
      for (const socket of open) socket.destroy();
    },
    /** One call with both of its events. */
    async call(command: string) {
      const body = { tool_name: "Bash", tool_input: { command }, tool_use_id: command };
      const before = await place.ask({ ...body, hook_event_name: "PreToolUse" });
      await place.ask({ ...body, hook_event_name: "PostToolUse", tool_response: {} });
      return before;
    },
    steps: async () =>
      JSON.parse((await place.svc("show", "claude-code-s", "--json")).out).steps.map(
        ({ status }: { status: string }) => status,
      ),
  };
}

it("asks for every call over one connection, and opens another one after it broke", async () => {
  verifies("beyond.hooks.stream");
  const s = await relayed();
  for (const command of ["touch a", "touch b"]) expect(await s.call(command)).toMatchObject({ code: 0 });
  expect(s.requests).toEqual(["GET /v1/stream"]);
  s.cut();
  expect(await s.call("touch c")).toMatchObject({ code: 0 });
  expect(s.requests).toEqual(["GET /v1/stream", "GET /v1/stream"]);
  expect(await s.steps()).toEqual(["succeeded", "succeeded", "succeeded"]);
});

it("asks over HTTP where the service has no stream, and refuses where nothing answers", async () => {
  verifies("beyond.hooks.stream");
  const s = await relayed();
  s.relay.streams = false;
  expect(await s.call("touch a")).toMatchObject({ code: 0 });
  expect(s.requests[0]).toBe("GET /v1/stream");
  expect(s.requests).toContain("POST /v1/runs/claude-code-s/intents");
  expect(await s.steps()).toEqual(["succeeded"]);
  await s.server.stop();
  const refused = await s.call("touch b");
  expect(refused).toMatchObject({ code: 2, out: "" });
  expect(refused.err).toContain("the service cannot be reached");
});

it("refuses with the service's own reason when the key is another one", async () => {
  verifies("beyond.hooks.stream");
  const s = await relayed();
  expect(await s.call("touch a")).toMatchObject({ code: 0 });
  writeFileSync(join(s.folder, "claude-code.key"), "unknown");
  expect((await s.call("touch b")).err).toContain("the service answered 401");
});
