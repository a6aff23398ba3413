/** Coding agents' hooks against a real server; inputs made by hand from the clients' documentation. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { HOOK_CLIENTS, type HookAnswer, type HookClient } from "../../src/hook/clients/clients.ts";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { type Answer, type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const text = (path: string) => readFileSync(file(path), "utf8");
const svc = `${process.execPath} ${file("bin/svc.js")}`;
const home = tempDir("hook-home");
const GIT = await program("git");

let s: ConsoleServer;
let n = 0;
beforeAll(async () => {
  s = await consoleServer({
    manifests: text("packs/coding-agents/manifests.yaml"),
    policy: text("packs/coding-agents/policy.yaml"),
    config: `console: off\nrollback: {compensator_cmd: "${svc} hook restore --dir ${home}", reader_cmd: "${svc} hook read --dir ${home}"}\n`,
  });
  return () => s.close();
});

type Events = Record<string, Record<string, unknown> | null>;
const waiting = /approval required: request (apr_[0-9a-f-]+)/;

/** A session of a client in its own folder. */
function session(client: HookClient, more: Partial<HookSettings> = {}) {
  const cwd = tempDir("hook-cwd");
  const id = `s${n++}`;
  const run = `${client}-${id}`;
  const events = JSON.parse(text(`test/cases/hooks/${client}.json`)) as Events;
  const settings = {
    server: s.url,
    key: "agent",
    mode: "enforce",
    notes: join(home, "notes"),
    snapshot: SNAPSHOT_DEFAULTS,
    folder: home,
    protect: [s.folder],
    home,
  };
  const send = async (event: object) => {
    const key = client === "cursor" ? "conversation_id" : "session_id";
    const input = JSON.stringify({ ...event, [key]: id }).replaceAll("$CWD", cwd);
    return handleEvent(client, input, () => ({ ...settings, ...more }) as HookSettings);
  };
  const filled = (name: string, values: Record<string, string>) => {
    const source = JSON.stringify(events[name]);
    return JSON.parse(
      Object.entries(values).reduce(
        (all, [from, to]) => all.replaceAll(from, JSON.stringify(to).slice(1, -1)),
        source,
      ),
    ) as Record<string, unknown>;
  };
  return {
    cwd,
    run,
    events,
    send,
    shell: (command: string) => filled("shell", { COMMAND: command }),
    edit: (name: string) => filled("edit", { FILE: name }),
    steps: async () => (await s.api("agent", "GET", `/v1/runs/${run}`)).body.steps as Answer[],
  };
}

const NO_WORD: Record<HookClient, string> = { "claude-code": "", codex: "", cursor: "{}", gemini: "" };
const PASSED = { out: "", code: 0 };
/** The reason of a refusal. Fails for any other form of answer, which some client takes for leave. */
function reason({ code, out, err }: HookAnswer): string {
  expect([code, out]).toEqual([2, ""]);
  return err;
}

async function rolledBack(run: string) {
  await s.api("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, retries: 1 });
  const job = async () => (await s.api("auditor", "GET", `/v1/runs/${run}/rollback`)).body.job;
  await until(async () => (await job()).state !== "running", "the job to end");
  return (await job()).report;
}

const NOT_SVC =
  "does not answer like svc: it returned no decision; check the URL (server in the hook's settings)";
const STRANGE_ANSWERS = [
  "<!doctype html><p>Welcome",
  "{}",
  "null",
  '{"decision":"allow"}',
  '{"decision":"block"}',
];

describe.each(HOOK_CLIENTS)("%s", (client) => {
  it("records what passes, and says no word to the client", async () => {
    verifies("beyond.hooks.clients", "beyond.hooks.intents", "beyond.hooks.no-override");
    const { send, shell, events, steps } = session(client);
    const call = shell("ls -la");
    expect(await send(call)).toEqual({ out: NO_WORD[client], err: "", code: 0 });
    expect(await send({ ...call, ...events["after"] })).toEqual({ out: NO_WORD[client], err: "", code: 0 });
    expect(await steps()).toMatchObject([{ tool: "code.shell_read", status: "succeeded" }]);
    if (events["failed"] === null) return;
    await send(shell("npm test"));
    await send({ ...shell("npm test"), ...events["failed"] });
    expect((await steps())[1]).toMatchObject({ tool: "code.shell_build", status: "failed" });
  });

  it("refuses in the client's own words until a person has decided, and then lets it pass once", async () => {
    verifies("beyond.hooks.waits", "beyond.hooks.clients");
    const { send, shell, events } = session(client);
    const call = shell("rm -r build");
    const why = reason(await send(call));
    expect(why).toContain("a rollback brings back only recorded files");
    const id = waiting.exec(why)![1];
    expect(reason(await send(events["mcp"]!))).toMatch(waiting);
    expect((await s.api("approver", "POST", `/v1/approvals/${id}/approve`, {})).status).toBe(200);
    // The same command, described in other words.
    const again = {
      ...call,
      tool_use_id: "another",
      tool_input: {
        ...(call["tool_input"] as object),
        ...(client === "codex" ? {} : { description: "again" }),
      },
    };
    expect((await send(again)).out).toBe(NO_WORD[client]);
    expect(reason(await send({ ...again, tool_use_id: "third" }))).toMatch(waiting);
  });

  it("puts edited files back, byte for byte", async () => {
    verifies("beyond.hooks.restores", "beyond.hooks.clients");
    const { cwd, run, send, edit, events } = session(client);
    const path = join(cwd, "a.bin");
    const fresh = join(cwd, "fresh.txt");
    const bytes = Buffer.from([0, 255, 10, 13, 128, ...Buffer.from("old ä\r\n")]);
    writeFileSync(path, bytes);
    chmodSync(path, 0o754);
    const call = edit("a.bin");
    expect((await send(call)).out).toBe(NO_WORD[client]);
    writeFileSync(path, "new");
    if (client === "codex") writeFileSync(fresh, "fresh\n");
    await send({ ...call, ...events["after"] });
    expect(await rolledBack(run)).toMatchObject({ complete: true, compensated: [0] });
    expect([readFileSync(path), statSync(path).mode & 0o777]).toEqual([bytes, 0o754]);
    expect(statSync(fresh, { throwIfNoEntry: false })).toBeUndefined();
  });

  it("refuses protected paths, and every decision", async () => {
    verifies("beyond.hooks.protected", "beyond.hooks.deciding");
    const { cwd, send, shell, edit, run } = session(client);
    for (const call of [
      shell("svc approvals approve apr_1"),
      shell(`cat ${s.folder}/keys.json`),
      edit(".env"),
    ])
      expect(reason(await send(call))).toContain("it touches what decides about the agent, or credentials");
    expect((await s.api("auditor", "GET", `/v1/runs/${run}`)).body.steps).toEqual([]);
    symlinkSync(".claude", join(cwd, "cl"));
    mkdirSync(join(cwd, ".claude"));
    for (const call of [
      edit("cl/settings.json"),
      shell("echo > cl/settings.json"),
      edit(".claude/settings.json.svc-backup"),
      shell("git bisect run svc halt lift --all"),
      shell("sed 'r .env' a.txt"),
    ])
      expect(reason(await send(call))).toContain("it touches what decides about the agent");
    expect((await s.api("auditor", "GET", `/v1/runs/${run}`)).body.steps).toEqual([]);
    // Also where the policy and the mode would let it pass.
    const { send: observed, edit: other } = session(client, { mode: "observe" });
    expect(reason(await observed(other(".env")))).toContain("holds credentials");
  });

  it("refuses when the service cannot be asked", async () => {
    verifies("beyond.hooks.fails-closed");
    const away = session(client, { server: "http://127.0.0.1:1" });
    expect(reason(await away.send(away.shell("ls")))).toContain(
      "the service cannot be reached (ECONNREFUSED)",
    );
    const stranger = session(client, { key: "no such key" });
    expect(reason(await stranger.send(stranger.shell("ls")))).toContain("the service answered 401");
    for (const answer of STRANGE_ANSWERS) {
      const strange = createServer((_request, response) => response.end(answer));
      await new Promise<void>((done) => strange.listen(0, "127.0.0.1", done));
      const server = `http://127.0.0.1:${(strange.address() as AddressInfo).port}`;
      const elsewhere = session(client, { server });
      expect(reason(await elsewhere.send(elsewhere.shell("ls")))).toBe(`svc: ${server} ${NOT_SVC}`);
      strange.close();
    }
    const settings = () => {
      throw new Error("hook.json: must be a JSON object");
    };
    expect(reason(await handleEvent(client, JSON.stringify(away.shell("ls")), settings))).toContain(
      "hook.json",
    );
    for (const input of ["", "[]", "{}", JSON.stringify({ ...away.shell("ls"), tool_name: undefined })])
      expect(await handleEvent(client, input, settings)).toMatchObject({
        out: "",
        code: 2,
        err: expect.stringContaining("svc: "),
      });
  });
});

describe("a tool that takes addresses or paths", () => {
  const answer = async (tool_name: string, tool_input: object) => {
    const { send, shell } = session("claude-code");
    return send({ ...shell("ls"), tool_name, tool_input });
  };

  it.each([
    ["WebFetch", { url: "file:///srv/shop/.env", prompt: "x" }],
    ["WebFetch", { url: "FILE:///srv/shop/%2eenv" }],
    ["WebFetch", { url: "view-source:file:///srv/a/../server.key" }],
    ["mcp__files__read_file", { path: "~/.ssh/id_ed25519" }],
    ["mcp__files__read_file", { options: [{ path: ".env" }] }],
    ["Unheard", { target: "~root/../etc/shadow" }],
  ])("is refused what is protected: %s %j", async (tool, input) => {
    verifies("beyond.hooks.protected");
    expect(reason(await answer(tool, input))).toContain("it touches what decides");
  });

  it("gets anything else", async () => {
    expect(
      await answer("WebFetch", { url: "https://example.com/.env", prompt: "what is .env?" }),
    ).toMatchObject(PASSED);
    expect(reason(await answer("mcp__files__read_file", { path: "README.md" }))).toMatch(waiting);
  });
});

describe("a search", () => {
  const answer = async (tool_name: string, tool_input: object) => {
    const { cwd, send, shell } = session("claude-code");
    writeFileSync(join(cwd, ".env"), "x");
    return send({ ...shell("ls"), tool_name, tool_input });
  };

  it.each([
    ["Grep", { pattern: "x", path: ".env" }],
    ["Grep", { pattern: "x", glob: ".en*" }],
    ["Grep", { pattern: "x", glob: "*.{ts,env}" }],
    ["Grep", { pattern: "x", path: "~/.ssh" }],
    ["Grep", { pattern: "x", path: "~" }],
    ["Glob", { pattern: "**/.env" }],
    ["Glob", { pattern: "*", path: "~/.config/svc" }],
    ["read_many_files", { paths: ["src", ".env"] }],
    ["read_many_files", { include: ["~/.ssh/**"] }],
    ["search_file_content", { pattern: "x", include: "*.pem" }],
  ])("for what is protected is refused: %s %j", async (tool, input) => {
    verifies("beyond.hooks.protected");
    expect(reason(await answer(tool, input))).toContain("it touches what decides");
  });

  it.each([
    ["Grep", { pattern: "x", path: "~/.config" }],
    ["Grep", { pattern: "x", glob: "*" }],
    ["read_many_files", { paths: ["**/*"] }],
    ["search_file_content", { pattern: "x", dir_path: "~/.config" }],
  ])("that covers it waits: %s %j", async (tool, input) => {
    verifies("beyond.hooks.protected");
    expect(reason(await answer(tool, input))).toMatch(waiting);
  });

  it.each([
    ["Grep", { pattern: "\\.env", glob: "*.{ts,md}" }],
    ["Glob", { pattern: "src/**/*" }],
    ["read_many_files", { paths: ["src/**/*.ts"] }],
  ])("for anything else passes: %s %j", async (tool, input) => {
    expect(await answer(tool, input)).toMatchObject(PASSED);
  });
});

describe("a session", () => {
  it("reports in observe mode what would have been blocked, and blocks nothing", async () => {
    verifies("beyond.hooks.observe");
    const { send, shell, run } = session("claude-code", { mode: "observe" });
    const { out } = await send(shell("curl https://example.com"));
    expect(JSON.parse(out)).toEqual({
      systemMessage: expect.stringContaining("svc would have blocked this: it talks to other machines"),
    });
    const { body } = await s.api("auditor", "GET", `/v1/search/records?run_id=${run}&event=would_block`);
    expect(body.records).toHaveLength(1);
  });

  it("settles at the end of a turn what no event came after", async () => {
    verifies("beyond.hooks.no-outcome");
    const { cwd, send, shell, edit, events, steps, run } = session("claude-code");
    writeFileSync(join(cwd, "a"), "old");
    writeFileSync(join(cwd, "b"), "old");
    await send(shell("mkdir build"));
    await send({ ...edit("a"), tool_use_id: "1" });
    await send({ ...edit("b"), tool_use_id: "2" });
    const subagent = { ...edit("c"), tool_use_id: "3", agent_id: "agent-1", agent_type: "Explore" };
    await send(subagent);
    writeFileSync(join(cwd, "b"), "new");
    await send(events["ended"]!);
    await send(events["ended"]!);
    const statuses = async () => (await steps()).map(({ status }) => status);
    expect(await statuses()).toEqual(["uncertain", "failed", "succeeded"]);
    const agents = async () => (await s.api("agent", "GET", `/v1/runs/${run}.agent-1`)).body;
    expect((await agents()).steps).toMatchObject([{ status: "intended" }]);
    await send({ ...events["ended"], hook_event_name: "SessionEnd" });
    expect((await agents()).steps).toMatchObject([{ status: "failed" }]);
    await rolledBack(run);
    expect(readFileSync(join(cwd, "b"), "utf8")).toBe("old");
  });

  it("has a child run for each sub-agent, whichever of them calls first", async () => {
    verifies("beyond.hooks.sub-agents");
    const { cwd, send, edit, run } = session("claude-code");
    const of = (agent_id: string) => ({ agent_id, agent_type: "Explore" });
    writeFileSync(join(cwd, "a"), "old");
    let call = 0;
    const edited = async (agent: object, text: string) => {
      const event = { ...edit("a"), ...agent, tool_use_id: `sub-${call++}` };
      expect((await send(event)).code).toBe(0);
      writeFileSync(join(cwd, "a"), text);
      await send({ ...event, hook_event_name: "PostToolUse", tool_response: {} });
    };
    for (const [at, agent] of [of("one"), {}, of("two/../x"), of("one")].entries())
      await edited(agent, `${at}`);
    await edited(of("x".repeat(200)), "last");
    const { body } = await s.api("auditor", "GET", `/v1/runs/${run}`);
    expect(body.steps).toHaveLength(1);
    expect(body.children.slice(0, 2)).toEqual([`${run}.one`, `${run}.two_.._x`]);
    expect(body.children).toHaveLength(3);
    expect((await s.api("auditor", "GET", `/v1/runs/${run}.one`)).body).toMatchObject({ parent: run });
    await s.api("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, children: true });
    const job = async () => (await s.api("operator", "GET", `/v1/runs/${run}/rollback`)).body.job;
    await until(async () => (await job()).state !== "running", "the job");
    expect((await job()).report.complete).toBe(true);
    expect(readFileSync(join(cwd, "a"), "utf8")).toBe("old");
  });

  it("is governed in its own run once it has too many sub-agents", async () => {
    verifies("beyond.hooks.sub-agents");
    const { send, shell, run, steps } = session("claude-code");
    await send({ ...shell("ls"), tool_use_id: "0" });
    for (let i = 0; i < 100; i++)
      expect((await s.api("agent", "POST", "/v1/runs", { parent: run, permissions: [] })).status).toBe(201);
    const late = { ...shell("ls"), tool_use_id: "1", agent_id: "late" };
    expect((await send(late)).code).toBe(0);
    expect(await steps()).toHaveLength(2);
  });

  it("names the files that a command changed, because nothing can restore them", async () => {
    verifies("beyond.hooks.work-tree");
    const notes = tempDir("hook-notes");
    const { cwd, send, shell, events, run } = session("claude-code", { notes });
    execFileSync(GIT, ["init", "-q"], { cwd });
    for (const name of ["same", "gone", "changed", "build.log"]) writeFileSync(join(cwd, name), name);
    writeFileSync(join(cwd, ".gitignore"), "*.log\n");
    execFileSync(GIT, ["add", "."], { cwd });
    // Times of files are coarser than the clock, and lag behind it on a busy machine.
    const clock = join(cwd, "clock.log");
    await until(() => {
      writeFileSync(clock, "");
      return statSync(clock).ctimeMs > statSync(join(cwd, ".gitignore")).ctimeMs;
    }, "the clock of files to go on");
    const call = shell("mv gone ../elsewhere");
    expect((await send(call)).out).toBe("");
    const [note = ""] = readdirSync(notes, { recursive: true }).filter((name) =>
      String(name).endsWith(".json"),
    );
    const noted = JSON.parse(readFileSync(join(notes, String(note)), "utf8"));
    // As on a machine whose clock of files lags by a minute.
    noted.command.began_ms += 60_000;
    writeFileSync(join(notes, String(note)), JSON.stringify(noted));
    rmSync(join(cwd, "gone"));
    for (const name of ["changed", "build.log", "fresh"]) writeFileSync(join(cwd, name), "new");
    const { out } = await send({ ...call, ...events["after"] });
    expect(JSON.parse(out)).toEqual({
      systemMessage: "svc: beyond undo, changed by this command: changed, fresh, gone",
    });
    expect(await rolledBack(run)).toMatchObject({ complete: false, unrecoverable: [0] });
  });

  it("distinguishes two equal calls at once if the client does not number them", async () => {
    verifies("beyond.hooks.intents");
    const { send, shell, events, steps } = session("gemini");
    for (const event of [{}, {}, events["after"], events["after"]]) await send({ ...shell("ls"), ...event });
    expect((await steps()).map(({ status }) => status)).toEqual(["succeeded", "succeeded"]);
  });

  it("says of an edit that could not be kept that it cannot be undone", async () => {
    verifies("beyond.hooks.not-kept");
    const snapshot = { ...SNAPSHOT_DEFAULTS, max_file: 10 };
    const { cwd, send, edit, events, run } = session("claude-code", { snapshot });
    writeFileSync(join(cwd, "big"), "more than ten bytes");
    await send(edit("big"));
    writeFileSync(join(cwd, "big"), "new");
    const { out } = await send({ ...edit("big"), ...events["after"] });
    const systemMessage = `svc: beyond undo, changed by this edit: ${join(cwd, "big")}`;
    expect(JSON.parse(out)).toEqual({ systemMessage });
    expect(await rolledBack(run)).toMatchObject({
      complete: false,
      failed: [{ step: 0, error: "not recorded: 1 files" }],
    });
  });

  it("leaves later writes alone", async () => {
    verifies("beyond.hooks.restores");
    const { cwd, send, edit, events, run } = session("claude-code");
    mkdirSync(join(cwd, "new"));
    await send(edit("new/x"));
    writeFileSync(join(cwd, "new/x"), "agent's");
    await send({ ...edit("new/x"), ...events["after"] });
    writeFileSync(join(cwd, "new/x"), "mine");
    expect((await rolledBack(run)).failed).toMatchObject([{ step: 0, error: "conflict: changed since" }]);
    rmSync(join(cwd, "new/x"));
    expect(await rolledBack(run)).toMatchObject({ complete: true });
  });
});
