/** `svc completion`: scripts that know every command and option there is, tried out in the shells. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { COMMAND_TABLE } from "../../src/cli/commands/index.ts";
import { speak } from "../support/io.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
const folder = tempDir("completion");
const scripts: Record<string, string> = {};
const PROGRAMS = { bash: "bash", zsh: await program("zsh"), fish: await program("fish") };

beforeAll(async () => {
  for (const shell of SHELLS) {
    const { code, out, err } = await speak(["completion", shell], { cwd: folder });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    scripts[shell] = out;
    writeFileSync(join(folder, `svc.${shell}`), out);
  }
});

describe.each(SHELLS)("the script for %s", (shell) => {
  it("knows every command, and options of each kind", () => {
    for (const { name } of COMMAND_TABLE) expect(scripts[shell]).toContain(`svc/${name}`);
    for (const place of ["svc/halt/add", "svc/config/show", "svc/keys/list"])
      expect(scripts[shell]).toContain(place);
    expect(scripts[shell]).toContain("send-test");
    expect(scripts[shell]).toMatch(/files'? '?sqlite'? '?postgres/);
    expect(scripts[shell]!.split("\n").every((line) => !line.includes("undefined"))).toBe(true);
  });

  it("is one that the shell can read", () => {
    const read = () => execFileSync(PROGRAMS[shell], ["-n", join(folder, `svc.${shell}`)], { stdio: "pipe" });
    expect(read).not.toThrow();
  });
});

describe("in bash", () => {
  const complete = (...words: string[]) => {
    const quoted = ["svc", ...words].map((word) => `'${word}'`).join(" ");
    const script = `source '${join(folder, "svc.bash")}'; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const out = execFileSync("bash", ["--norc", "-c", script], { encoding: "utf8" });
    return out.split("\n").filter((word) => word !== "");
  };

  it.each([
    [[""], COMMAND_TABLE.map(({ name }) => name)],
    [["ha"], ["halt"]],
    [
      ["halt", ""],
      ["add", "list", "lift"],
    ],
    [
      ["halt", "l"],
      ["list", "lift"],
    ],
    [
      ["doctor", "--s"],
      ["--store", "--server", "--send-test"],
    ],
    [
      ["runs", "--store", ""],
      ["files", "sqlite", "postgres"],
    ],
    [["runs", "--store", "=", "s"], ["sqlite"]],
    [["runs", "--store", "sqlite", "--js"], ["--json"]],
    [
      ["completion", ""],
      ["bash", "zsh", "fish"],
    ],
    [["validate", ""], []],
    [["runs", "-d", ""], []],
  ])("%j offers %j", (words, offered) => {
    expect(complete(...words).sort()).toEqual([...offered].sort());
  });
});

describe("svc completion", () => {
  it("refuses another shell", async () => {
    const { code, err } = await speak(["completion", "tcsh"], { cwd: folder });
    expect(code).toBe(1);
    expect(err).toContain("bash, zsh, fish");
  });
});
