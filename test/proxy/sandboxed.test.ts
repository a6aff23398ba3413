/** `sandboxed: allow`: hook events from inside `svc run`, and everybody who claims to be inside without being so. */
import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type CliResult, svc } from "../support/cli.ts";
import { type HookedPlace, hookedPlace } from "../support/hooked.ts";
import { program } from "../support/programs.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

await program("bubblewrap");

const PLACE = await hookedPlace("claude-code", "--hold", "0");
const UNKNOWN = 'node -e \'require("fs").writeFileSync("made","x")\'';
const SESSION = "0a1b2c3d-1111-2222-3333-444455556666";

/** A client that starts its hook as the real one does, with events that the script makes. */
const CLIENT = `#!/bin/bash
event() { # name, session, command, directory, id
  node -e 'const [name, session_id, command, cwd, id] = process.argv.slice(1);
    console.log(JSON.stringify({hook_event_name: name, session_id, cwd, tool_use_id: id, tool_name: "Bash", tool_input: {command}, tool_response: {}, sandboxed: true}))' "$@"; }
hook() { event "$@" | sh -c "$(node -e 'const s = require(process.env.CLAUDE_CONFIG_DIR + "/settings.json"); console.log(s.hooks[process.argv[1]][0].hooks[0].command)' "$1")" 2>&1; echo "code $?"; }
run() { hook PreToolUse "$SESSION" "$1" "$PWD" "$2" && bash -c "$1"; hook PostToolUse "$SESSION" "$1" "$PWD" "$2"; }
eval "$1"
`;
mkdirSync(join(PLACE.home, "bin"));
const client = join(PLACE.home, "bin/claude");
writeFileSync(client, CLIENT);
chmodSync(client, 0o755);

function inside(place: HookedPlace, script: string, session = SESSION): Promise<CliResult> {
  return svc(["run", "--config", place.config, "--", client, `SESSION=${session}; ${script}`], {
    cwd: place.shop,
    env: { HOME: place.home },
  });
}

const post = async (
  path: string,
  body: object,
): Promise<{ status: number; body: Record<string, unknown> }> => {
  const key = readFileSync(join(PLACE.folder, "claude-code.key"), "utf8").trim();
  const answer = await fetch(PLACE.server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const records = async (): Promise<string> => (await PLACE.svc("export")).out;

/** Says these words to the resident process, as any program of this user can. */
function sayToResident(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(PLACE.folder, "resident/hook.sock"), () => socket.write(`${text}\0`));
    let said = "";
    socket.setEncoding("utf8").on("data", (part: string) => (said += part));
    socket.once("error", reject).once("close", () => resolve(said));
  });
}

const event = (more: object = {}) =>
  JSON.stringify({
    hook_event_name: "PreToolUse",
    session_id: "liar",
    cwd: PLACE.shop,
    tool_use_id: "t",
    tool_name: "Bash",
    tool_input: { command: UNKNOWN },
    ...more,
  });

let launched = "";

describe("sandboxed: allow", () => {
  it("lets unknown commands pass inside svc run, records why, and undoes them", async () => {
    verifies("beyond.sandboxed.passes", "beyond.sandboxed.recorded", "beyond.run.hook-socket");
    const { out, err } = await inside(
      PLACE,
      `run ${JSON.stringify(UNKNOWN)} a; hook PreToolUse $SESSION "rm -r src" "$PWD" b; hook PreToolUse $SESSION "curl https://x.test" "$PWD" c; hook PreToolUse $SESSION "cat .env" "$PWD" d`,
    );
    expect(out, err).toMatch(/^code 0\ncode 0\n/);
    launched = /svc run: (run_\S+)/.exec(err)![1]!;
    expect(out.match(/approval required/g)).toHaveLength(2);
    expect(out).toContain("holds credentials");
    expect(existsSync(join(PLACE.shop, "made"))).toBe(true);
    const lines = (await records()).split("\n").filter((line) => line.includes("sandboxed by run"));
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({ event: "intended", tool: "code.shell_unknown" });
    expect(lines[0]).toContain("no approval needed by not-understood");
    const undone = await PLACE.svc("rollback", `claude-code-${SESSION}`);
    expect(undone.out).toContain("compensated:");
    expect(existsSync(join(PLACE.shop, "made"))).toBe(false);
  });

  it("changes nothing for the same call outside", async () => {
    verifies("beyond.sandboxed.liar");
    const asked = await PLACE.ask({
      session_id: "outside",
      tool_name: "Bash",
      tool_input: { command: UNKNOWN },
      sandboxed: true,
    });
    expect([asked.code, asked.err]).toEqual([2, expect.stringContaining("approval required")]);
    const command = PLACE.commands()["PreToolUse"]!;
    const named = await new Promise<number | null>((resolve) => {
      const child = spawn("sh", ["-c", command], { env: { PATH: process.env["PATH"]!, SVC_SANDBOXED: "1" } });
      child.stdin.end(event());
      child.once("close", resolve);
    });
    expect(named).toBe(2);
  });

  it("takes no claim of an agent over HTTP", async () => {
    verifies("beyond.sandboxed.liar", "beyond.sandboxed.key");
    const own = { permissions: ["code.run"], sandbox: "ab".repeat(32) };
    expect(await post("/v1/runs", own)).toMatchObject({
      status: 403,
      body: { error: "a sandboxed run needs a key with may_sandbox" },
    });
    await post("/v1/runs", { run_id: "http-liar", permissions: ["code.run"] });
    const proofs = [
      { run_id: "http-liar", secret: "x" },
      { run_id: "http-liar", secret: "" },
      { run_id: "no-such-run", secret: "x" },
      { run_id: launched, secret: "ab".repeat(32) },
    ];
    for (const sandboxed of proofs) {
      const { body } = await post("/v1/runs/http-liar/intents", {
        tool: "code.shell_unknown",
        args: { client: "claude-code", command: UNKNOWN, cwd: "/" },
        reason: "x",
        sandboxed,
      });
      expect(body["decision"]).not.toBe("allow");
    }
  });

  it("takes no invented evidence at the resident process", async () => {
    verifies("beyond.sandboxed.liar");
    const word = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const invented = { run_id: "http-liar", secret: "x", workspace: PLACE.shop };
    expect(
      await sayToResident(`svc1 call claude-code ${word(invented)}\n${event({ session_id: "inventor" })}`),
    ).toMatch(/^refuse\n[\s\S]*approval required/);
    expect(await sayToResident(`svc1 call claude-code ${word({})}\n${event()}`)).toContain("not understood");
  });

  it("takes from inside only events of this run", async () => {
    verifies("beyond.run.hook-socket", "beyond.sandboxed.liar");
    mkdirSync(join(PLACE.home, "other"), { recursive: true });
    const say = (text: string) =>
      `perl -e 'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un("${PLACE.folder}/resident/hook.sock")) or die; syswrite($s, "${text}\\0"); print while <$s>'`;
    const { out, err } = await inside(
      PLACE,
      `${say("svc1 replace 9")}; ${say("svc1 call claude-code abc\\n{}")}; ${say("GET / HTTP/1.1\\n")}
       hook PreToolUse outside ls "$PWD" a; hook PreToolUse a.b ls "$PWD" b; hook PreToolUse $SESSION ls ${PLACE.home}/other c
       ln -s ${PLACE.home}/other out; hook PreToolUse $SESSION ls "$PWD/out" d
       ls -A ${PLACE.folder} ${PLACE.folder}/resident; (echo {} > ${PLACE.folder}/claude-code.json) 2>/dev/null || echo kept
       mv ${PLACE.folder}/resident x 2>/dev/null || echo fixed; mv ${PLACE.home}/.config/svc x 2>/dev/null || echo fixed; mv ${PLACE.home}/.config x 2>/dev/null || echo fixed
       (echo '{}' > $CLAUDE_CONFIG_DIR/settings.json) 2>/dev/null || echo governed`,
      "7a1b2c3d-1111-2222-3333-444455556666",
    );
    expect(out.match(/only hook events are taken here/g), err).toHaveLength(3);
    expect(out).toContain("began outside of this svc run");
    expect(out).toContain("needs a plain id");
    expect(out.match(/calls are made in/g)).toHaveLength(2);
    expect(out.match(/code 2/g)).toHaveLength(4);
    expect(out).toMatch(/resident:\nhook\.sock\nkept\nfixed\nfixed\nfixed\ngoverned/);
  });

  it("refuses too many sessions and too large events", async () => {
    verifies("beyond.run.hook-socket");
    const socket = `${PLACE.folder}/resident/hook.sock`;
    const { out, err } = await inside(
      PLACE,
      `perl -e 'use Socket; for my $n (1..202) { socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un("${socket}")) or die;
         syswrite($s, "svc1 call claude-code\\n{\\"hook_event_name\\":\\"SessionEnd\\",\\"session_id\\":\\"n$n\\",\\"cwd\\":\\"$ENV{PWD}\\"}\\0"); print while <$s> }'
       perl -e 'use Socket; $SIG{PIPE} = "IGNORE"; socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un("${socket}")) or die;
         for (1..40) { defined syswrite($s, "x" x 1048576) or last } print while <$s>'`,
      "9a1b2c3d-1111",
    );
    expect(out.match(/200 sessions at most/g), err).toHaveLength(2);
    expect(out.match(/^pass$/gm)).toHaveLength(200);
    expect(out).toContain("too large");
  });

  it("cannot be reached from outside while the command runs", async () => {
    verifies("beyond.run.hook-socket");
    const running = inside(PLACE, "touch ready; until [ -e go ]; do sleep 0.05; done", "8a1b2c3d-1111");
    await until(() => existsSync(join(PLACE.shop, "ready")), "the command");
    const sockets = readdirSync(realpathSync(tmpdir()))
      .filter((name) => name.startsWith("svc-run-"))
      .flatMap((name) => readdirSync(join(tmpdir(), name)).filter((file) => file.endsWith(".sock")));
    writeFileSync(join(PLACE.shop, "go"), "");
    expect([sockets, (await running).code]).toEqual([[], 0]);
  });
});
