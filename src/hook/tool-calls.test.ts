import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import type { HookEvent } from "./clients/clients.ts";
import { createPathGuard } from "./path-guard.ts";
import { packCall } from "./tool-calls.ts";

const home = "/home/ann";
const cwd = "/src/shop";

function called(
  tool: string,
  input: Record<string, unknown>,
  authority = "127.0.0.1:8787",
  changed: string[] = [],
) {
  const event = { moment: "before", session: "s", call: "c", agent: null, cwd, tool, input };
  return packCall("codex", event as unknown as HookEvent, createPathGuard({ home, protect: [], authority }), {
    home,
    changed,
  });
}

describe("an edit of what judges the calls, or of a program on the path", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  it.each([
    ["this package", join(root, "dist/index.js")],
    ["its Node", process.execPath],
    ["the package in a project", "node_modules/takeback/bin/svc.js"],
    [
      "a program on the path",
      join(process.env["PATH"]!.split(":").find((path) => path.startsWith("/"))!, "git"),
    ],
    ["one of a part of the project", "packages/web/node_modules/Takeback/dist/x.js"],
  ])("needs approval: %s", (_, path) => {
    verifies("beyond.hooks.own-programs");
    expect(called("Write", { file_path: path, content: "x" })).toMatchObject({
      tool: "code.edit_unasked",
      touches: [],
    });
    expect(called("Read", { file_path: path }).tool).toBe("code.read");
    expect(called("Bash", { command: `cp a ${path}` }).tool).toBe("code.shell_unknown");
    expect(called("Bash", { command: `grep x ${path}` }).tool).toBe("code.shell_read");
  });

  it("needs none for packages with another name", () => {
    verifies("beyond.hooks.own-programs");
    const path = "node_modules/takeback-x/a.js";
    expect(called("Write", { file_path: path, content: "x" }).tool).toBe("code.edit");
  });
});

describe("an edit outside of the workspace", () => {
  const edit = (file_path: string) => called("Write", { file_path, content: "x" });

  it.each([
    ...[
      "~/.cargo/config.toml",
      "~/.gradle/init.d/a.gradle",
      "~/.docker/cli-plugins/docker-x",
      "~/.bashrc.d/a",
    ],
    ...["~/.local/lib/python3.11/site-packages/usercustomize.py", "~/notes/todo.md", "/opt/x", "/dev/shm/x"],
    `${cwd}/../../../opt/x`,
  ])("needs approval: %s", (path) => {
    verifies("beyond.hooks.unasked-files", "beyond.hooks.writes-outside");
    expect(edit(path)).toMatchObject({ tool: "code.edit_unasked", touches: [] });
  });

  it.each(["src/a.ts", "/tmp/a.sh", "~/.claude/plans/a.md", "~/.codex/memories/a.md"])(
    "is none in a temporary directory or among a client's notes: %s",
    (path) => {
      verifies("beyond.hooks.everyday-work");
      expect(edit(path)).toMatchObject({ tool: "code.edit", touches: [] });
    },
  );
});

describe("a patch of Codex", () => {
  it("changes every file that its parser finds a header for, indented ones as well", () => {
    verifies("beyond.hooks.restores", "beyond.hooks.protected");
    const patch = [
      "*** Begin Patch",
      "*** Add File: a.txt",
      "+one",
      "  *** Delete File: b.txt",
      "\t*** Update File: .git/hooks/pre-commit",
      "*** Move to: c\u2028d.txt",
      "@@",
      "+two",
      "*** End Patch",
    ];
    const { tool, files, touches } = called("apply_patch", { command: patch.join("\n") });
    const names = [".git/hooks/pre-commit", "a.txt", "b.txt", "c\u2028d.txt"];
    // The folders that they lie in are not there, and would be made.
    expect(files.filter((path) => !path.endsWith("/"))).toEqual(names.map((name) => `${cwd}/${name}`));
    expect(files).toContain(`${cwd}/.git/hooks/`);
    expect([tool, touches]).toEqual(["code.edit_unasked", []]);
  });

  it("names each file with all the characters that the client keeps", () => {
    verifies("beyond.hooks.names");
    const patch = [
      "*** Add File:  leading.txt",
      "*** Add File: mark\ufeff",
      "*** Add File: next-line\u0085",
      "*** Update File: cafe\u0301 ",
      "*** Move to: caf\u00e9 ",
    ];
    const { files } = called("apply_patch", { command: patch.join("\n") });
    for (const name of [" leading.txt", "mark\ufeff", "next-line", "cafe\u0301", "caf\u00e9 "])
      expect(files).toContain(`${cwd}/${name}`);
    expect(files).not.toContain(`${cwd}/leading.txt`);
    expect(files).not.toContain(`${cwd}/mark`);
  });

  it("is read to its end, however many blank lines it has", () => {
    verifies("beyond.hooks.protected");
    // One look at each line takes no time; one from each line over all that follow would take hours.
    const blank = "\r\n".repeat(1_000_000);
    const { files } = called("apply_patch", { command: `*** Add File: a.txt\n${blank}*** Add File: b.txt` });
    expect(files.slice(-2)).toEqual([`${cwd}/a.txt`, `${cwd}/b.txt`]);
  });
});

describe("a service at the port that addresses leave out", () => {
  const touches = (input: object, authority = "127.0.0.1") =>
    called("mcp__db__query", { ...input }, authority).touches;

  it.each(["0", "x = 0.0; sleep(0)", "version 0.0.0", "2130706433", "0:8787", "localhost:3000"])(
    "is not meant by %s",
    (text) => {
      expect(touches({ text })).toEqual([]);
    },
  );

  it.each([
    "http://0/",
    "fetch('http://0x7f000001')",
    "//127.1/v1",
    "http://me@0",
    "curl 127.1/v1/halts",
    "0/v1/approvals",
    "localhost",
    "127.0.0.1:80",
    "http://localhost:80/",
    "http://①②⑦.0.0.1/",
    "http://%6c%6fcalhost/",
    "http://127.0.\n0.1/",
  ])("is meant by %s", (text) => {
    verifies("beyond.hooks.protected");
    expect(touches({ text })).toEqual(["it talks to the service"]);
  });

  it("is known by the number of that port, too", () => {
    verifies("beyond.hooks.protected");
    for (const text of ["https://svc.example.com:443/", "https://svc.example.com/", "svc.example.com"])
      expect(touches({ text }, "svc.example.com")).toEqual(["it talks to the service"]);
    expect(touches({ text: "svc.example.com:8443" }, "svc.example.com")).toEqual([]);
  });
});
