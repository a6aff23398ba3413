/** Readers against transcripts of the real clients, and against what somebody could make of them. */
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { callFingerprint, type HookClient } from "../clients/clients.ts";
import { readTranscripts, type SeenFiles } from "./transcripts.ts";

const sample = (name: string) =>
  fileURLToPath(new URL(`../../../test/cases/transcripts/${name}`, import.meta.url));

function read(client: HookClient, path: string, before?: SeenFiles) {
  const found = readTranscripts(client, [path], before);
  if ("not_checked" in found) throw new Error(found.not_checked);
  return found;
}

const shortly = (client: HookClient, path: string) =>
  read(client, path).calls.map(({ ref, tool, ran }) => `${ran ? "ran" : "refused"} ${tool} ${ref}`);

describe("a real transcript", () => {
  it("of Claude Code names every call, with those of sub-agents", () => {
    verifies("beyond.hooks.transcripts");
    const folder = tempDir("transcripts");
    const path = join(folder, "session.jsonl");
    copyFileSync(sample("claude-code.jsonl"), path);
    mkdirSync(join(folder, "session/subagents"), { recursive: true });
    copyFileSync(sample("claude-code-agent.jsonl"), join(folder, "session/subagents/agent-1.jsonl"));
    expect(shortly("claude-code", path)).toEqual([
      "ran Bash toolu_1",
      "ran Write toolu_3",
      "refused Bash toolu_5",
      "ran Bash toolu_7",
      "ran Bash toolu_9",
      "ran Agent toolu_11",
      "ran Bash toolu_13",
    ]);
  });

  it("of Codex names the calls of scripts, and the calls next to them", () => {
    verifies("beyond.hooks.transcripts");
    const tools = shortly("codex", sample("codex.jsonl")).map((line) =>
      line.replace(/exec-[0-9a-f-]+/, "exec-.."),
    );
    expect(tools).toEqual([
      "ran CommandExecution exec-..",
      "ran FileChange exec-..",
      "ran CommandExecution exec-..",
      "ran CommandExecution exec-..",
      "ran spawn_agent call_11",
      "ran wait_agent call_12",
    ]);
  });

  it("of Gemini CLI names its calls by tool and input, as its hook does", () => {
    verifies("beyond.hooks.transcripts");
    const shell = (command: string) => callFingerprint("run_shell_command", { command });
    expect(shortly("gemini", sample("gemini.jsonl"))).toEqual([
      `ran run_shell_command ${shell("ls")}`,
      `ran write_file ${callFingerprint("write_file", { file_path: "notes/new.txt", content: "x\n" })}`,
      `refused run_shell_command ${shell("cat .env")}`,
      `ran run_shell_command ${shell("cat nothing-here")}`,
      `ran run_shell_command ${shell("ls")}`,
      `ran invoke_agent ${callFingerprint("invoke_agent", { agent_name: "generalist", prompt: "do the side job" })}`,
    ]);
  });
});

const CLIENTS = ["claude-code", "codex", "gemini"] as const;

describe.each(CLIENTS)("a transcript of %s", (client) => {
  const fresh = () => {
    const path = join(tempDir("transcripts"), "session.jsonl");
    copyFileSync(sample(`${client}.jsonl`), path);
    return path;
  };
  const why = (path: string, before?: SeenFiles) => {
    const found = readTranscripts(client, [path], before);
    return "not_checked" in found ? found.not_checked.replace(path, "it") : "checked";
  };

  it("is not checked if it is missing, shorter than before, changed or of an unknown form", () => {
    verifies("beyond.hooks.not-checked");
    const path = fresh();
    const { seen } = read(client, path);
    const text = readFileSync(path, "utf8");
    appendFileSync(path, `${text.split("\n").at(-2)}\n`);
    expect(why(path, seen)).toBe("checked");
    writeFileSync(path, text.slice(0, -100));
    expect(why(path, seen)).toBe("it is shorter than before");
    writeFileSync(path, `${text.replace("README", "READYOU")}${text.split("\n").at(-2)}\n`);
    expect(why(path, seen)).toBe("it was changed");
    writeFileSync(path, text.replace("\n", "\nnot json\n"));
    expect(why(path)).toBe("it has an unknown form");
    writeFileSync(path, '{"a": 1}\n');
    expect(why(path)).toBe("it has an unknown form");
    writeFileSync(path, "");
    expect(why(path)).toBe("it has an unknown form");
    rmSync(path);
    expect(why(path, seen)).toBe("it cannot be read");
  });
});

it("is not checked for a client without a reader, and for one that named none", () => {
  verifies("beyond.hooks.not-checked");
  expect(readTranscripts("cursor", ["/x"])).toHaveProperty("not_checked");
  expect(readTranscripts("codex", [])).toHaveProperty("not_checked");
});

it("does not take the output of a command for a refusal", () => {
  verifies("beyond.hooks.transcripts");
  const path = join(tempDir("transcripts"), "session.jsonl");
  const text = readFileSync(sample("claude-code.jsonl"), "utf8");
  const faked = text.replace(
    '"content":"README.md"',
    '"content":"Exit code 1\\nPreToolUse:Bash hook error: svc"',
  );
  writeFileSync(path, faked);
  expect(shortly("claude-code", path)[0]).toBe("ran Bash toolu_1");
});
