/** The resident process and the small script in front of it: what passes a call, and everything that must not. */
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { carrierWords } from "../../src/cli/commands/agents/carrier.ts";
import type { CommandIo } from "../../src/cli/io.ts";
import { type CliResult, svc } from "../support/cli.ts";
import { hookedPlace, startHook } from "../support/hooked.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const LOOK = { tool_name: "Bash", tool_input: { command: "ls" } };
const REMOVE = { tool_name: "Bash", tool_input: { command: "rm a.txt" } };
const PASSED = { code: 0, out: "", err: "" };
const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Sends text to the resident process as a carrier does. */
function say(folder: string, text: string): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    const socket = connect(join(folder, "resident/hook.sock"), () => socket.write(text));
    socket.setEncoding("utf8").on("data", (part: string) => (said += part));
    socket.on("error", () => resolve(said)).on("close", () => resolve(said));
  });
}

const opened: Server[] = [];
afterEach(() => {
  for (const server of opened.splice(0)) server.close();
});

/** A socket that answers as the test says, in the place of the resident process. */
async function standIn(answer: (socket: Socket) => void) {
  const home = realpathSync(tempDir("carrier"));
  const own = join(home, "resident");
  mkdirSync(own, { mode: 0o700 });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  opened.push(server);
  await new Promise<void>((resolve) => server.listen(join(own, "hook.sock"), resolve));
  return { home, own };
}

const NC = await program("netcat-openbsd");
const CARRIERS = {
  perl: ["/usr/bin/perl", file("bin/carrier.pl")],
  nc: ["/bin/sh", file("bin/carrier.sh"), NC],
  node: [],
} as const;
type Carrier = keyof typeof CARRIERS;

const carried = (carrier: Carrier, home: string): Promise<CliResult> => {
  const settings = join(home, "codex.json");
  const words = [
    ...CARRIERS[carrier],
    process.execPath,
    file("bin/svc.js"),
    "hook",
    "codex",
    "--settings",
    settings,
  ];
  return startHook(`exec ${words.map((word) => `'${word}'`).join(" ")}`, "{}", home).ended;
};

describe.each(["perl", "nc", "node"] as const)("the carrier in %s", (carrier) => {
  it.each<[string, string | null]>([
    ["nothing", ""],
    ["half a word", "pas"],
    ["no end marker", "pass\n"],
    ["a cut end marker", "pass\nend"],
    ["text after it", "pass\nend\npass\n"],
    ["an unknown word", "allow\nend\n"],
    ["other text before it", "hello\npass\nend\n"],
    ["only a hold", "hold 1\n"],
    ["a refusal without text", "refuse\nend\n"],
    ["a refusal with an answer for the client", 'refuse\no {"decision":"allow"}\nend\n'],
    ["a reset", null],
  ])("refuses the call on %s", async (_, text) => {
    verifies("beyond.hooks.whole-answer");
    const { home } = await standIn((socket) => (text === null ? socket.destroy() : socket.end(text)));
    const said = await carried(carrier, home);
    expect([said.code, said.out]).toEqual([2, ""]);
    expect(said.err).toContain("svc: ");
  });

  it("passes on a whole answer, with the text for the client", async () => {
    verifies("beyond.hooks.whole-answer");
    const { home } = await standIn((socket) => socket.end('hold 1\nwait\npass\no {"a":\no 1}\nend\n'));
    expect(await carried(carrier, home)).toEqual({ code: 0, out: '{"a":\n1}\n', err: "" });
  });

  it("refuses when no answer comes, also if bytes do", async () => {
    verifies("beyond.hooks.four-seconds");
    const { home } = await standIn((socket) => {
      socket.write("pass\n");
      const drip = setInterval(() => socket.write("e x\n"), 200);
      socket.on("close", () => clearInterval(drip));
      socket.on("end", () => socket.destroy());
    });
    const said = await carried(carrier, home);
    expect([said.code, said.out]).toEqual([2, ""]);
    expect(said.err).toContain("no answer within 4 s");
  });

  it("refuses a socket that is a link or a file, and a directory that others can open", async () => {
    verifies("beyond.hooks.same-user");
    const { home, own } = await standIn((socket) => socket.end("pass\nend\n"));
    const path = join(own, "hook.sock");
    const other = await standIn((socket) => socket.end("pass\nend\n"));
    if (carrier !== "node") {
      chmodSync(own, 0o755);
      expect(await carried(carrier, home)).toMatchObject({ code: 2, out: "" });
      chmodSync(own, 0o700);
    }
    rmSync(path);
    symlinkSync(join(other.own, "hook.sock"), path);
    expect(await carried(carrier, home)).toMatchObject({ code: 2, out: "" });
    rmSync(path);
    writeFileSync(path, "pass\nend\n");
    expect(await carried(carrier, home)).toMatchObject({ code: 2, out: "" });
  });
});

describe("the resident process", () => {
  it("is started by the first hook, in a directory and at a socket of its user alone", async () => {
    verifies("beyond.hooks.same-user", "beyond.hooks.carrier");
    const place = await hookedPlace("codex", "--hold", "0");
    expect(place.commands()["PreToolUse"]).toMatch(/\/perl" ".*carrier\.pl" /);
    expect(await place.ask(LOOK)).toEqual(PASSED);
    const own = join(place.folder, "resident");
    expect(statSync(own).mode & 0o777).toBe(0o700);
    expect(statSync(join(own, "hook.sock")).mode & 0o777).toBe(0o600);
    await place.server.stop();
  });

  it("reads no pipe in the place of a file, which would stop it for every session", async () => {
    verifies("beyond.hooks.four-seconds");
    const place = await hookedPlace("claude-code", "--hold", "0");
    const inner = join(place.shop, "inner");
    mkdirSync(join(inner, ".claude"), { recursive: true });
    for (const name of [".git", ".claude/settings.json", ".mcp.json", ".npmrc", "transcript.jsonl"])
      execFileSync("mkfifo", [join(inner, name)]);
    const there = { session_id: "there", cwd: inner, transcript_path: join(inner, "transcript.jsonl") };
    await place.ask({ ...there, ...LOOK });
    await place.ask({ ...there, hook_event_name: "SessionEnd" });
    expect(await place.ask(LOOK)).toEqual(PASSED);
    await place.server.stop();
  });

  it("is asked through nc without perl, and through Node without both", async () => {
    verifies("beyond.hooks.carrier");
    const bin = tempDir("bin");
    symlinkSync(NC, join(bin, "nc"));
    const io = (PATH: string) => ({ env: { PATH }, cwd: tempDir("cwd") }) as unknown as CommandIo;
    expect(carrierWords(io(`/nowhere:${bin}`))).toEqual(["/bin/sh", file("bin/carrier.sh"), join(bin, "nc")]);
    expect(carrierWords(io("/nowhere"))).toEqual([]);
    const place = await hookedPlace("codex", "--hold", "0");
    const settings = join(place.home, ".codex/hooks.json");
    const text = readFileSync(settings, "utf8");
    const words = `\\"/bin/sh\\" \\"${file("bin/carrier.sh")}\\" \\"${NC}\\"`;
    writeFileSync(settings, text.replaceAll(/\\"[^"]*perl\\" \\"[^"]*carrier\.pl\\"/g, words));
    expect(place.commands()["PreToolUse"]).toContain("carrier.sh");
    // The first event starts the process, and the second one is carried to it.
    expect(await place.ask(LOOK)).toEqual(PASSED);
    expect(await place.ask(LOOK)).toEqual(PASSED);
    expect(await place.ask(REMOVE)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("svc: "),
    });
    await place.server.stop();
  });

  it("reads its settings when they change", async () => {
    verifies("beyond.hooks.settings-again");
    const place = await hookedPlace("codex", "--hold", "0");
    expect(await place.ask(REMOVE)).toMatchObject({ code: 2 });
    place.change({ workspaces: [] });
    expect(await place.ask({ ...REMOVE, session_id: "other" })).toEqual(PASSED);
    await place.server.stop();
  });

  it("has one winner of two, makes place for another version, and ends held calls with a refusal", async () => {
    verifies("beyond.hooks.one-process");
    const place = await hookedPlace("codex");
    const env = { HOME: place.home };
    const first = spawn(process.execPath, [file("bin/svc.js"), "hook", "serve", "--dir", place.folder], {
      env,
    });
    await new Promise((resolve) => first.stdout.once("data", resolve));
    const second = await svc(["hook", "serve", "--dir", place.folder], { env });
    expect([second.code, second.out]).toEqual([0, "a process of this version answers them already\n"]);
    const held = place.begin(REMOVE);
    await until(async () => (await place.approvals()).length === 1, "the call to be held");
    const ended = new Promise((resolve) => first.once("exit", resolve));
    expect(await say(place.folder, "svc1 replace 0.0.0-other\0")).not.toBe("");
    expect(await held.ended).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("approval required"),
    });
    expect(await ended).toBe(0);
    expect(await place.ask(LOOK)).toEqual(PASSED);
    await place.server.stop();
  });

  it("denies the calls under way when it is killed, and judges the next ones again", async () => {
    verifies("beyond.hooks.killed");
    const place = await hookedPlace("codex");
    const env = { HOME: place.home };
    const first = spawn(process.execPath, [file("bin/svc.js"), "hook", "serve", "--dir", place.folder], {
      env,
    });
    await new Promise((resolve) => first.stdout.once("data", resolve));
    const calls = ["a", "b", "c"].map((session_id) => place.begin({ ...REMOVE, session_id }));
    await until(async () => (await place.approvals()).length === calls.length, "the calls to be held");
    first.kill("SIGKILL");
    for (const { ended } of calls) expect(await ended).toMatchObject({ code: 2, out: "" });
    expect(await place.ask(LOOK)).toEqual(PASSED);
    await place.server.stop();
  });

  it("takes 64 calls at once, and denies the others", async () => {
    verifies("beyond.hooks.sixty-four");
    const place = await hookedPlace("codex", "--hold", "0");
    expect(await place.ask(LOOK)).toEqual(PASSED);
    const idle = await Promise.all(
      Array.from(
        { length: 64 },
        () =>
          new Promise<Socket>((resolve) => {
            const socket = connect(join(place.folder, "resident/hook.sock"), () => resolve(socket));
            socket.on("error", () => {});
          }),
      ),
    );
    const crowded = await say(place.folder, `svc1 call codex\n{}\0`);
    expect(crowded).toMatch(/^refuse\ne .*64 calls are under way/);
    for (const socket of idle) socket.destroy();
    await until(async () => (await place.ask(LOOK)).code === 0, "room for a call");
    await place.server.stop();
  });

  it("ends after its idle time, and not before", async () => {
    verifies("beyond.hooks.idle-end");
    const folder = tempDir("resident");
    const script = [
      `import { runResident } from ${JSON.stringify(file("src/hook/resident/resident.ts"))};`,
      `console.log(await runResident({ folder: ${JSON.stringify(folder)}, version: "1", idle_ms: 300 }));`,
      "process.exit(0);",
    ].join("\n");
    const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
      cwd: file("."),
    });
    let out = "";
    child.stdout.on("data", (text) => (out += text));
    await new Promise((resolve) => child.once("exit", resolve));
    expect(out).toBe("ended\n");
  });
});
