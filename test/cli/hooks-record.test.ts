/** Commands that the installed hook recorded, undone by `svc rollback`: through the real hook, service and command. */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ContentStore } from "../../src/hook/record/content-store.ts";
import { sweepRecords } from "../../src/hook/record/sweep.ts";
import { sweepDeletedRuns } from "../../src/hook/record/sweep-deleted.ts";
import { type HookSettings, readSettings } from "../../src/hook/settings.ts";
import { treeOf } from "../../stress/prove/histories.ts";
import type { CliResult } from "../support/cli.ts";
import { hookedPlace } from "../support/hooked.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");

interface Tool {
  tool_name: string;
  tool_input: object;
}

const bash = (command: string): Tool => ({ tool_name: "Bash", tool_input: { command } });
const write = (file_path: string): Tool => ({ tool_name: "Write", tool_input: { file_path, content: "" } });

/** A connected workspace whose service runs, and a session in it. `settings` are added to the hook's. */
async function session(settings: object = {}) {
  const place = await hookedPlace("claude-code");
  place.change(settings);
  const { home, shop: cwd, folder, server } = place;
  // The first event starts the process that judges. On a busy machine, that can take longer than a decision may.
  // Elsewhere, so that it begins no record of the workspace.
  const first = { session_id: "first", cwd: home, tool_name: "Bash", tool_input: { command: "ls" } };
  await until(async () => (await place.ask(first)).code === 0, "the hook answers");
  let calls = 0;
  const event = (hook_event_name: string, body: object) => place.ask({ hook_event_name, ...body });
  return {
    home,
    cwd,
    env: { HOME: home },
    folder,
    server,
    event,
    at: (name: string) => join(cwd, name),
    /** Calls a tool: its two events, and between them what the tool does. Throws if the call is refused. */
    async call(tool: Tool, work: () => void | Promise<void>, fails = false): Promise<CliResult> {
      const body = { ...tool, tool_use_id: `c${calls++}` };
      const before = await event("PreToolUse", body);
      if (before.code !== 0) throw new Error(`the call was refused: ${before.err}`);
      await work();
      const failure = { error: "exit code 1" };
      const after = fails
        ? await event("PostToolUseFailure", { ...body, ...failure })
        : await event("PostToolUse", { ...body, tool_response: {} });
      return { ...after, out: `${before.out}${after.out}` };
    },
    async rollback(...options: string[]) {
      const { out, err } = await place.svc("rollback", "claude-code-s", "--json", ...options);
      if (!out.startsWith("{")) throw new Error(err);
      return JSON.parse(out);
    },
    run: place.svc,
  };
}

describe("edits and commands of a session", () => {
  it("go back together to the state before the run's first change", async () => {
    verifies("beyond.record.together", "beyond.record.own-changes", "beyond.record.difference");
    const s = await session();
    writeFileSync(s.at("a.txt"), "first\n");
    writeFileSync(s.at("script.sh"), "echo\n", { mode: 0o644 });
    writeFileSync(s.at(".gitignore"), "ignored\n");
    writeFileSync(s.at("ignored"), "ignored by git\n");
    mkdirSync(s.at("empty"));
    const first = treeOf(s.cwd);
    await s.call(write(s.at("a.txt")), () => writeFileSync(s.at("a.txt"), "edited\n"));
    await s.call(bash("sed -i s/edited/replaced/ a.txt"), () => writeFileSync(s.at("a.txt"), "replaced\n"));
    await s.call(write(s.at("a.txt")), () => writeFileSync(s.at("a.txt"), "edited again\n"));
    await s.call(write(s.at("new/tool.sh")), () => {
      mkdirSync(s.at("new"));
      writeFileSync(s.at("new/tool.sh"), "echo\n");
    });
    await s.call(bash("chmod +x new/tool.sh"), () => chmodSync(s.at("new/tool.sh"), 0o755));
    const said = await s.call(bash("mkdir -p made/deep"), () => {
      mkdirSync(s.at("made/deep"), { recursive: true });
      symlinkSync("a.txt", s.at("link"));
      chmodSync(s.at("script.sh"), 0o4755);
      writeFileSync(s.at("ignored"), "changed\n");
      rmSync(s.at("empty"), { recursive: true });
    });
    expect(said).toMatchObject({ code: 0, out: "" });
    expect(await s.rollback()).toMatchObject({ complete: true, failed: [], unrecoverable: [] });
    expect(treeOf(s.cwd)).toEqual(first);
    await s.server.stop();
  });

  it("are undone after a command that failed", async () => {
    verifies("beyond.record.exit-code");
    const s = await session();
    writeFileSync(s.at("a.txt"), "first");
    await s.call(bash("mkdir x a.txt"), () => writeFileSync(s.at("a.txt"), "half"), true);
    expect(await s.rollback()).toMatchObject({ complete: true, compensated: [0] });
    expect(readFileSync(s.at("a.txt"), "utf8")).toBe("first");
    await s.server.stop();
  });

  it("undo a commit, although the index was refreshed since", async () => {
    verifies("beyond.record.git");
    const s = await session();
    const git = (...args: string[]) => execFileSync(GIT, args, { cwd: s.cwd, encoding: "utf8" });
    git("init", "-q", "-b", "main");
    git("config", "user.email", "a@example.test");
    git("config", "user.name", "a");
    writeFileSync(s.at("a.txt"), "one\n");
    git("add", ".");
    git("commit", "-qm", "one");
    const head = git("rev-parse", "HEAD");
    writeFileSync(s.at("a.txt"), "two\n");
    await s.call(bash("git add a.txt"), () => void git("add", "a.txt"));
    await s.call(bash("git commit -m two"), () => void git("commit", "-qm", "two"));
    await s.call(bash("git status"), () => void git("status"));
    expect(git("rev-parse", "HEAD")).not.toBe(head);
    expect(await s.rollback()).toMatchObject({ complete: true });
    expect(git("rev-parse", "HEAD")).toBe(head);
    expect(git("status", "--porcelain")).toBe(" M a.txt\n");
    await s.server.stop();
  });
});

describe("the files of an edit", () => {
  const patch = (...names: string[]): Tool => {
    const files = names.map((name) => `*** Update File: ${name}\n@@\n`);
    return {
      tool_name: "apply_patch",
      tool_input: { command: `*** Begin Patch\n${files.join("")}*** End Patch` },
    };
  };

  it("are undone one by one, and one that somebody changed is named", async () => {
    verifies("beyond.record.edits", "beyond.record.names-files", "beyond.record.skip");
    const s = await session();
    for (const name of ["a", "b", "c"]) writeFileSync(s.at(name), "first");
    await s.call(patch("a", "b", "c"), () => {
      for (const name of ["a", "b", "c"]) writeFileSync(s.at(name), "second");
    });
    writeFileSync(s.at("b"), "somebody's");
    const { failed } = await s.rollback("--skip", s.at("c"));
    expect(failed).toMatchObject([
      {
        step: 0,
        parts: [
          { path: "b", error: "conflict: changed since" },
          { path: "c", error: "left out by --skip" },
        ],
      },
    ]);
    expect(["a", "b", "c"].map((name) => readFileSync(s.at(name), "utf8"))).toEqual([
      "first",
      "somebody's",
      "second",
    ]);
    await s.server.stop();
  });

  it("are undone outside the workspace too, and a directory that became a link is never followed", async () => {
    verifies("beyond.record.edits", "beyond.record.links");
    const s = await session();
    const outside = tempDir("outside");
    writeFileSync(join(outside, "notes"), "first");
    mkdirSync(s.at("d"));
    writeFileSync(s.at("d/f"), "first");
    await s.call(write(join(outside, "notes")), () => writeFileSync(join(outside, "notes"), "second"));
    await s.call(write(s.at("d/f")), () => writeFileSync(s.at("d/f"), "second"));
    renameSync(s.at("d"), s.at("moved"));
    symlinkSync("moved", s.at("d"));
    const { failed, compensated } = await s.rollback();
    expect(compensated).toEqual([0]);
    expect(failed).toMatchObject([
      { step: 1, parts: [{ path: "d/f", error: "conflict: a link is in its place" }] },
    ]);
    expect(readFileSync(join(outside, "notes"), "utf8")).toBe("first");
    expect(readFileSync(s.at("moved/f"), "utf8")).toBe("second");
    await s.server.stop();
  });
});

describe("calls while a build runs in the background", () => {
  it("are undone, except what the build may have written", async () => {
    verifies("beyond.record.overlap");
    const s = await session();
    for (const name of ["a", "b"]) writeFileSync(s.at(name), "first");
    const server = {
      tool_name: "Bash",
      tool_input: { command: "npm run dev", run_in_background: true },
      tool_use_id: "server",
    };
    expect((await s.event("PreToolUse", server)).code).toBe(0);
    await s.event("PostToolUse", { ...server, tool_response: { backgroundTaskId: "b1" } });
    await s.call(write(s.at("a")), () => writeFileSync(s.at("a"), "second"));
    await s.call(bash("sed -i s/first/second/ b"), () => {
      writeFileSync(s.at("b"), "second");
      mkdirSync(s.at("dist"));
    });
    const { failed, compensated } = await s.rollback();
    expect(compensated).toEqual([1]);
    expect(failed).toMatchObject([
      { step: 2, parts: [{ path: "dist", error: "conflict: changed while another was writing" }] },
    ]);
    expect(["a", "b"].map((name) => readFileSync(s.at(name), "utf8"))).toEqual(["first", "first"]);
    await s.server.stop();
  });

  it("do not bring back a file of the build, which the build removed during an edit", async () => {
    verifies("beyond.record.overlap");
    const s = await session();
    const build = { ...bash("npm run build"), tool_use_id: "build" };
    mkdirSync(s.at("dist"));
    await s.event("PreToolUse", build);
    writeFileSync(s.at("dist/x"), "built");
    await s.call(write(s.at("dist/x")), () => rmSync(s.at("dist/x")));
    await s.event("PostToolUse", { ...build, tool_response: {} });
    const { failed } = await s.rollback();
    const error = "conflict: changed while another was writing";
    expect(failed).toMatchObject([{ step: 1, parts: [{ path: "dist/x", error }] }]);
    expect(existsSync(s.at("dist/x"))).toBe(false);
    await s.server.stop();
  });
});

describe("a rollback that cannot restore everything", () => {
  it("names each file it left, restores the rest, and leaves out skipped paths", async () => {
    verifies("beyond.record.names-files", "beyond.record.skip");
    const s = await session();
    for (const name of ["a", "b", "c"]) writeFileSync(s.at(name), "first");
    await s.call(bash("cp x a"), () => {
      for (const name of ["a", "b", "c"]) writeFileSync(s.at(name), "second");
    });
    writeFileSync(s.at("b"), "somebody's");
    const report = await s.rollback("--skip", s.at("c"));
    expect(report).toMatchObject({
      complete: false,
      failed: [
        {
          step: 0,
          parts: [
            { path: "b", error: "conflict: changed since" },
            { path: "c", error: "left out by --skip" },
          ],
        },
      ],
    });
    expect(["a", "b", "c"].map((name) => readFileSync(s.at(name), "utf8"))).toEqual([
      "first",
      "somebody's",
      "second",
    ]);
    const text = await s.run("rollback", "claude-code-s");
    expect(text.code).toBe(2);
    expect(text.out).toContain("b: conflict: changed since");
    writeFileSync(s.at("b"), "second");
    expect(await s.rollback()).toMatchObject({ complete: true });
    expect(readFileSync(s.at("b"), "utf8")).toBe("first");
    await s.server.stop();
  });

  it("never writes through a link, of any owner", async () => {
    verifies("beyond.record.links");
    const s = await session();
    mkdirSync(s.at("d"));
    writeFileSync(s.at("d/f"), "first");
    const outside = tempDir("outside");
    writeFileSync(join(outside, "f"), "second");
    await s.call(bash("cp x d/f"), () => writeFileSync(s.at("d/f"), "second"));
    rmSync(s.at("d"), { recursive: true });
    symlinkSync(outside, s.at("d"));
    const { failed } = await s.rollback();
    expect(failed[0].parts).toEqual([{ path: "d/f", error: "conflict: a link is in its place" }]);
    expect(readFileSync(join(outside, "f"), "utf8")).toBe("second");
    await s.server.stop();
  });

  it("tells which machine has the contents", async () => {
    verifies("beyond.record.other-machine");
    const s = await session();
    await s.call(bash("touch a"), () => writeFileSync(s.at("a"), ""));
    rmSync(join(s.folder, "record"), { recursive: true });
    const { failed } = await s.rollback();
    expect(failed[0].error).toMatch(/^the recorded contents are no longer in /);
    await s.server.stop();
  });

  it("does not undo what changed while two calls ran", async () => {
    verifies("beyond.record.overlap");
    const s = await session();
    writeFileSync(s.at("a"), "first");
    const outer = { ...bash("cp x a"), tool_use_id: "outer" };
    await s.event("PreToolUse", outer);
    await s.call(bash("touch b"), () => writeFileSync(s.at("b"), ""));
    writeFileSync(s.at("a"), "second");
    const { out } = await s.event("PostToolUse", { ...outer, tool_response: {} });
    expect(JSON.parse(out).systemMessage).toContain("beyond undo");
    const { failed } = await s.rollback();
    const error = "conflict: changed while another was writing";
    expect(failed).toMatchObject([
      { step: 1, error, parts: [{ path: "b", error }] },
      { step: 0, error },
    ]);
    expect([readFileSync(s.at("a"), "utf8"), existsSync(s.at("b"))]).toEqual(["second", true]);
    await s.server.stop();
  });

  it("lists what changed during a read, and leaves it", async () => {
    verifies("beyond.record.overlap");
    const s = await session();
    writeFileSync(s.at("a"), "first");
    await s.call(bash("ls"), () => {});
    // Another wrote while it ran; a call of the run has its own record.
    const read = { ...bash("tail -n 3 a"), tool_use_id: "read" };
    await s.event("PreToolUse", read);
    await s.call(write(s.at("own")), () => writeFileSync(s.at("own"), "own"));
    writeFileSync(s.at("a"), "second");
    const { out } = await s.event("PostToolUse", { ...read, tool_response: {} });
    expect(JSON.parse(out).systemMessage).toContain("beyond undo, changed by this command: ");
    const { compensated, failed, skipped } = await s.rollback();
    const error = "conflict: changed while another was writing";
    expect(failed).toEqual([{ step: 1, line: "Run tail -n 3 a", error, parts: [{ path: "a", error }] }]);
    expect([compensated, skipped]).toEqual([[2], [0]]);
    expect([readFileSync(s.at("a"), "utf8"), existsSync(s.at("own"))]).toEqual(["second", false]);
    await s.server.stop();
  });

  it("counts files that a limit left out", async () => {
    verifies("beyond.record.limits", "beyond.record.not-recorded");
    const s = await session({ snapshot: { max_file: "10 kB", exclude: ["cache"] } });
    writeFileSync(s.at("large"), "x".repeat(20_000));
    mkdirSync(s.at("cache"));
    await s.call(bash("cp x large"), () => {
      writeFileSync(s.at("large"), "y".repeat(20_000));
      writeFileSync(s.at("cache/c"), "");
    });
    const { out } = await s.run("plan", "claude-code-s", "--json");
    expect(JSON.parse(out).actions[0].residue).toEqual([
      "what the command did outside the workspace",
      "cache",
    ]);
    const { failed } = await s.rollback();
    expect(failed).toMatchObject([
      { step: 0, error: "not recorded: 1 files", parts: [{ path: "large", error: "not recorded" }] },
    ]);
    await s.server.stop();
  });
});

describe("the retention of recorded contents", () => {
  /** A session with one recorded command, whose contents are old enough to be removed. */
  async function recorded() {
    const s = await session();
    writeFileSync(s.at("a"), "first content");
    await s.call(bash("cp x a"), () => writeFileSync(s.at("a"), "second content"));
    rmSync(s.at("a"));
    const record = join(s.folder, "record");
    for (const path of filesBelow(join(record, "objects"))) utimesSync(path, 1, 1);
    const swept: string[][] = [];
    const records = {
      async sweep(deleted: readonly string[]) {
        swept.push([...deleted]);
        rmSync(join(record, "roots"), { recursive: true });
        mkdirSync(join(record, "roots"));
        sweepRecords(new ContentStore(record, false), deleted);
      },
    };
    const kept = readSettings(join(s.folder, "claude-code.json"), s.env);
    return {
      ...s,
      swept,
      contents: () => filesBelow(join(record, "objects")).length,
      sweep: (more: Partial<HookSettings> = {}) =>
        sweepDeletedRuns(s.folder, records, () => ({ ...kept, ...more })),
    };
  }

  it("follows the service: a run that is there keeps them, and so does one that cannot be asked for", async () => {
    verifies("beyond.record.retention");
    const s = await recorded();
    await s.sweep();
    expect(s.swept).toEqual([[]]);
    expect(await s.rollback()).toMatchObject({ failed: [{ parts: [{ path: "a" }] }] });
    await expect(s.sweep({ key: "another" })).rejects.toThrow("401");
    await s.server.stop();
    await expect(s.sweep()).rejects.toThrow();
    expect({ swept: s.swept.length, contents: s.contents() }).toEqual({ swept: 1, contents: 1 });
  });

  it("removes them with a run that the service deleted, and from no other answer", async () => {
    verifies("beyond.record.retention");
    const s = await recorded();
    await s.server.stop();
    let answer = { status: 404, body: { error: "not found" } };
    const fake = createServer((_, response) => {
      response
        .writeHead(answer.status, { "content-type": "application/json" })
        .end(JSON.stringify(answer.body));
    });
    await new Promise<void>((done) => fake.listen(0, "127.0.0.1", done));
    const server = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`;
    await expect(s.sweep({ server })).rejects.toThrow("404");
    expect(s.contents()).toBe(2);
    answer = { status: 404, body: { error: "unknown run claude-code-s" } };
    await s.sweep({ server });
    expect({ swept: s.swept, contents: s.contents() }).toEqual({ swept: [["claude-code-s"]], contents: 0 });
    fake.close();
  });

  it("is counted by the retention plan of the machine", async () => {
    verifies("beyond.record.retention-plan");
    const s = await session();
    appendFileSync(join(s.folder, "policy.yaml"), "retention: {default_days: 30}\n");
    writeFileSync(s.at("a"), "first content");
    await s.call(bash("cp x a"), () => writeFileSync(s.at("a"), "second content"));
    const { out, err } = await s.run("retention", "plan");
    expect(`${out}${err}`).toMatch(/claude-code-s .* \d{3} bytes recorded on this machine/);
    await s.server.stop();
  });
});

describe("the record itself", () => {
  it("stays on the machine, for its user alone; the server gets paths, sizes, modes and keyed hashes", async () => {
    verifies("beyond.record.contents-local");
    const s = await session();
    writeFileSync(s.at("a"), "a very special content");
    await s.call(bash("cp x a"), () => writeFileSync(s.at("a"), "another special content"));
    const record = join(s.folder, "record");
    const files = filesBelow(record);
    expect(files.length).toBeGreaterThan(2);
    expect(files.filter((path) => (lstatSync(path).mode & 0o177) !== 0)).toEqual([]);
    expect(lstatSync(record).mode & 0o777).toBe(0o700);
    const plan = (await s.run("plan", "claude-code-s", "--json")).out;
    const state = JSON.parse(plan).actions[0].was.record.files.a;
    expect(state).toEqual({
      kind: "file",
      size: 22,
      mode: "0644",
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const told = filesBelow(join(s.folder, "data"))
      .map((path) => readFileSync(path, "latin1"))
      .join("\n");
    expect(told).not.toContain("special content");
    await s.server.stop();
  });

  it("is refused or reported when it cannot be made", async () => {
    verifies("beyond.record.required", "beyond.record.told");
    const s = await session({ snapshot: { required: true } });
    rmSync(join(s.folder, "record"), { recursive: true, force: true });
    writeFileSync(join(s.folder, "record"), "in the way");
    const refused = await s.event("PreToolUse", bash("touch a"));
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain("the workspace could not be recorded");
    const path = join(s.folder, "claude-code.json");
    const { snapshot: _, ...kept } = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify(kept));
    const told = await s.call(bash("touch a"), () => writeFileSync(s.at("a"), ""));
    expect(told.code).toBe(0);
    expect(told.out).toContain("this command cannot be undone, because the workspace could not be recorded");
    expect(await s.rollback()).toMatchObject({ complete: false, unrecoverable: [1] });
    await s.server.stop();
  });

  it("keeps the second gesture on cards of calls that reach out, destroy or are not understood", async () => {
    verifies("beyond.record.confirm");
    const pack = readFileSync(join(s_pack(), "manifests.yaml"), "utf8");
    for (const tool of ["shell_network", "shell_destructive", "shell_unknown"]) {
      const entry = pack.split("- tool: ").find((one) => one.startsWith(`code.${tool}\n`))!;
      expect(entry).toContain("effect: compensable");
      expect(entry).toMatch(/confirm: true|\*confirmed_command/);
    }
  });
});

const s_pack = () => new URL("../../packs/coding-agents", import.meta.url).pathname;

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}
