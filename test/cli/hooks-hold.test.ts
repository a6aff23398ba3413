/** A call that waits for a person is held, for as long as the client's own limit allows. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { HookClient } from "../../src/hook/clients/clients.ts";
import { hooksFile, withHooks } from "../../src/hook/clients/install.ts";
import { holdTime } from "../../src/hook/hold.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { svc } from "../support/cli.ts";
import { hookedPlace } from "../support/hooked.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const REMOVE = { tool_name: "Bash", tool_input: { command: "rm a.txt" } };
const PENDING = expect.stringMatching(/approval required: request apr_[\w-]+ is pending/);

async function waiting(place: Awaited<ReturnType<typeof hookedPlace>>): Promise<string> {
  const open = async () => (await place.approvals()).find(({ status }) => status === "pending");
  await until(async () => (await open()) !== undefined, "a request to wait");
  return (await open())!.id;
}

describe("a call that waits for a person", () => {
  it.each([["claude-code"], ["codex"]] as const)(
    "says nothing to %s once it is approved in time",
    async (client) => {
      verifies("beyond.hooks.hold");
      const place = await hookedPlace(client);
      const call = place.begin(REMOVE);
      const id = await waiting(place);
      expect((await place.svc("approvals", "approve", id, "--yes")).code).toBe(0);
      expect(await call.ended).toEqual({ code: 0, out: "", err: "" });
      // The approval is used up.
      const again = place.begin(REMOVE);
      expect(await waiting(place)).not.toBe(id);
      again.child.kill("SIGKILL");
      await place.server.stop();
    },
  );

  it("is refused with the request's id after the hold, and when somebody denies it", async () => {
    verifies("beyond.hooks.hold");
    const place = await hookedPlace("claude-code", "--hold", "1s");
    const after = await place.ask(REMOVE);
    expect(after).toEqual({ code: 2, out: "", err: PENDING });
    const [request] = await place.approvals();
    expect(after.err).toContain(request!.id);
    place.change({ hold_s: 50 });
    const call = place.begin({ ...REMOVE, session_id: "other" });
    await until(async () => (await place.approvals()).length === 2, "a second request");
    const second = (await place.approvals()).find(({ id }) => id !== request!.id)!;
    await place.svc("approvals", "deny", second.id, "--yes");
    expect(await call.ended).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining(`request ${second.id} was denied`),
    });
    await place.server.stop();
  });

  it("is refused at once with --hold 0, and if it is protected", async () => {
    verifies("beyond.hooks.hold");
    const off = await hookedPlace("claude-code", "--hold", "0");
    expect(await off.ask(REMOVE)).toEqual({ code: 2, out: "", err: PENDING });
    off.change({ hold_s: 50 });
    const secret = await off.ask({ ...REMOVE, tool_input: { command: "rm .env" } });
    expect(secret).toMatchObject({ code: 2, err: expect.stringContaining("holds credentials") });
    await off.server.stop();
  });

  /** Approves the pending request, and expects that nobody uses the approval. */
  async function expectUnused(place: Awaited<ReturnType<typeof hookedPlace>>) {
    const id = await waiting(place);
    await place.svc("approvals", "approve", id, "--yes");
    const looked = await place.ask({ tool_name: "Bash", tool_input: { command: "ls" } });
    expect(looked.code).toBe(0);
    expect((await place.approvals()).map(({ status }) => status)).toEqual(["approved"]);
    expect((await place.ask(REMOVE)).code).toBe(0);
    expect((await place.approvals()).map(({ status }) => status)).toEqual(["consumed"]);
    await place.server.stop();
  }

  it("leaves the approval unused when the hook is gone", async () => {
    verifies("beyond.hooks.hold-gone");
    const place = await hookedPlace("claude-code");
    const { child, ended } = place.begin(REMOVE);
    await waiting(place);
    child.kill("SIGKILL");
    await ended;
    await expectUnused(place);
  });

  it("leaves the approval unused when the client is gone and its hook is left behind", async () => {
    verifies("beyond.hooks.hold-gone");
    const place = await hookedPlace("claude-code");
    const event = { session_id: "s", cwd: place.shop, hook_event_name: "PreToolUse", tool_use_id: "held" };
    const input = JSON.stringify({ ...event, ...REMOVE });
    const started =
      "const c = require('node:child_process').spawn('sh', ['-c', process.argv[1]], {stdio: ['pipe', 'inherit', 'inherit']}); c.stdin.end(process.argv[2]); console.log(c.pid)";
    const client = spawn(process.execPath, ["-e", started, place.commands()["PreToolUse"]!, input], {
      cwd: place.shop,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const hook = await new Promise<number>((resolve) =>
      client.stdout!.on("data", (text) => resolve(Number(String(text)))),
    );
    await waiting(place);
    client.kill("SIGKILL");
    await until(() => isOver(hook), "the hook to notice");
    await expectUnused(place);
  });
});

/** Whether a process ended, reaped or not. */
function isOver(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

describe("the client's limit", () => {
  it.each([
    ["claude-code", [], 65],
    ["cursor", [], 65],
    ["codex", ["--hold", "2m"], 135],
    ["gemini", [], 65_000],
    ["gemini", ["--hold", "0"], 30_000],
  ] as const)("of %s with %j is at least 15 s above the hold", async (client, options, limit) => {
    verifies("beyond.hooks.hold-limit");
    const home = tempDir("hold");
    const connect = (...more: string[]) =>
      svc(["connect", client, "--hooks", ...more], { cwd: home, env: { HOME: home } });
    const limitNow = () => {
      const [before] = Object.values(
        JSON.parse(readFileSync(join(home, hooksFile(client)), "utf8")).hooks,
      ) as {
        timeout?: number;
        hooks?: { timeout: number }[];
      }[][];
      return before![0]!.timeout ?? before![0]!.hooks![0]!.timeout;
    };
    expect((await connect(...options)).code).toBe(0);
    expect(limitNow()).toBe(limit);
    // Connecting again keeps it.
    await connect();
    expect(limitNow()).toBe(limit);
    const wrong = await connect("--hold", "soon");
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("--hold")]);
  });

  it("shortens a hold to 10 s below what the settings say, wherever they are", () => {
    verifies("beyond.hooks.hold-limit");
    const home = tempDir("hold");
    const project = tempDir("hold");
    const moved = join(home, "moved.json");
    const settings = { home, hold_s: 50, hooks_file: moved } as HookSettings;
    const limit = (client: HookClient, file: string, change: (text: string) => string) =>
      writeFileSync(file, change(withHooks(client, "", `svc hook ${client} --settings x`, { hold_s: 50 })));
    expect(holdTime(settings, "codex", project)).toBe(20_000);
    limit("codex", moved, (text) => text);
    expect(holdTime(settings, "codex", project)).toBe(50_000);
    limit("codex", moved, (text) => text.replace('"timeout": 65', '"timeout": 40'));
    expect(holdTime(settings, "codex", project)).toBe(30_000);
    limit("codex", moved, (text) => text.replace('"timeout": 65', '"timeout": 5'));
    expect(holdTime(settings, "codex", project)).toBe(0);
    limit("gemini", moved, (text) => text.replace('"timeout": 65000', '"timeout": 25000'));
    expect(holdTime(settings, "gemini", project)).toBe(15_000);
    expect(holdTime({ ...settings, hold_s: 0 }, "gemini", project)).toBe(0);
  });
});
