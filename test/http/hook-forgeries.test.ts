/** The forging server against the hook, in its own process and in a resident one. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import { createServices, singleCall } from "../../src/hook/resident/services.ts";
import { type HookSettings, readSettings } from "../../src/hook/settings.ts";
import { svc } from "../support/cli.ts";
import {
  type AskedCall,
  FORGERY_NAMES,
  type ForgedSurface,
  forgedApprovers,
  playForgery,
  playHonestly,
  writeApprovers,
} from "../support/forgeries.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const tool = "code.shell_network";
const file = forgedApprovers(tool);
const folder = tempDir("hook-forgeries");
const resident = createServices(folder);
let url = "";
let asked: AskedCall;
let n = 0;

const lies: ForgedSurface["lies"] = { decision: {}, evidence: () => ({}) };
const settings = (): HookSettings => ({
  ...{ server: url, key: "agent", mode: "enforce", folder, home: folder, config_option: "" },
  ...{ notes: join(folder, "notes"), snapshot: SNAPSHOT_DEFAULTS, protect: [], approvers: file },
});

/** A surface whose calls share their process, or have one each. */
const surfaceOf = (isResident: boolean): ForgedSurface => ({
  lies,
  async open() {
    const session_id = `s${n++}`;
    return async (amount) => {
      const event = {
        ...{ session_id, cwd: folder, hook_event_name: "PreToolUse", tool_name: "Bash" },
        ...{ tool_use_id: `t${n++}`, tool_input: { command: `curl https://example.com/${amount}` } },
      };
      const context = { ...singleCall(folder), ...(isResident ? { services: resident } : {}) };
      const { code, err } = await handleEvent("claude-code", JSON.stringify(event), settings, context);
      return { ran: code === 0, why: err };
    };
  },
});

beforeAll(async () => {
  // A server that only lies: it allows everything.
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const path = request.url!;
      const intent = /\/v1\/runs\/([^/]+)\/intents$/.exec(path);
      let answer: object = {};
      if (intent !== null) {
        const { tool: named, args } = JSON.parse(Buffer.concat(parts).toString());
        asked = { run_id: intent[1]!, tool: named, args };
        answer = { decision: "allow", step: 0, ...lies.decision };
      } else if (path.endsWith("/signatures")) answer = lies.evidence(asked);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  afterAll(() => server.close());
});

describe.each([
  ["in its own process", false],
  ["in the resident process", true],
])("the hook %s", (_, isResident) => {
  const surface = surfaceOf(isResident);

  it("lets a really signed call pass", async () => {
    verifies("beyond.approvers.hook");
    await playHonestly(surface, { file, tool });
  });

  it.each(FORGERY_NAMES)("refuses %s", async (name) => {
    verifies("beyond.approvers.forgeries");
    await playForgery(name, surface, { file, tool });
  });

  it("leaves tools that the file does not name to the service", async () => {
    writeApprovers(file, "code.edit");
    lies.decision = {};
    expect((await (await surface.open())(1)).ran).toBe(true);
  });
});

describe("the hook's settings", () => {
  it("get the file from svc connect, which keeps it", async () => {
    verifies("beyond.approvers.hook-connect");
    const home = tempDir("hook-connect");
    const connect = (...more: string[]) =>
      svc(["connect", "claude-code", "--hooks", ...more], { cwd: home, env: { HOME: home } });
    const kept = () =>
      JSON.parse(readFileSync(join(home, ".config/svc/hooks/claude-code.json"), "utf8")).approvers;
    expect((await connect("--approvers", "approvers.json")).code).toBe(0);
    expect(kept()).toBe(join(home, "approvers.json"));
    expect((await connect()).code).toBe(0);
    expect(kept()).toBe(join(home, "approvers.json"));
  });

  it("refuse every call with an approvers file that is missing, and none that is ignored", async () => {
    verifies("beyond.approvers.hook-missing");
    const event = { session_id: "x", cwd: folder, hook_event_name: "PreToolUse", tool_name: "Bash" };
    const text = JSON.stringify({ ...event, tool_use_id: "x", tool_input: { command: "ls" } });
    const missing = () => ({ ...settings(), approvers: join(folder, "missing.json") });
    const answer = await handleEvent("claude-code", text, missing, singleCall(folder));
    expect([answer.code, answer.out, answer.err]).toEqual([2, "", expect.stringContaining("does not exist")]);
  });

  it("name the file by its path, which the agent cannot edit", async () => {
    const home = join(folder, "home");
    mkdirSync(home);
    const write = (approvers: unknown) => {
      writeFileSync(join(home, "claude-code.json"), JSON.stringify({ server: url, approvers }));
      writeFileSync(join(home, "agent.key"), "key", { mode: 0o600 });
      return readSettings(join(home, "claude-code.json"), { HOME: home });
    };
    const found = write("approvers.json");
    expect(found.approvers).toBe(join(home, "approvers.json"));
    expect(found.protect).toContain(join(home, "approvers.json"));
    expect(() => write(5)).toThrow("approvers: must be a path");
    expect(() => write("")).toThrow("approvers: must be a path");
  });
});
