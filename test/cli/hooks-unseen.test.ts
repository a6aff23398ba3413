/** Skills, commands, agents and tool servers that a person has not seen: their use needs approval. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { hookedPlace } from "../support/hooked.ts";
import { verifies } from "../support/verifies.ts";

const USES = [
  { tool_name: "Skill", tool_input: { skill: "x" } },
  { tool_name: "Agent", tool_input: { description: "d", prompt: "p", subagent_type: "x" } },
  { tool_name: "SlashCommand", tool_input: { command: "/x" } },
];

async function place() {
  const hooked = await hookedPlace("claude-code", "--hold", "0");
  const put = (path: string, text: string) => {
    const full = join(hooked.shop, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  };
  put(".claude/skills/old/SKILL.md", "an old skill");
  /** "passes", or the reason. */
  const use = async (event: object): Promise<string> => {
    const { code, err } = await hooked.ask(event);
    return code === 0 ? "passes" : err;
  };
  const approveAll = async () => {
    for (const { id, status } of await hooked.approvals())
      if (status === "pending") await hooked.svc("approvals", "approve", id, "--yes");
  };
  return { ...hooked, put, use, approveAll };
}

describe("a skill, command or agent", () => {
  it("that was there passes; a new or changed one waits until a person allowed its use", async () => {
    verifies("beyond.hooks.unseen-use");
    const s = await place();
    for (const event of USES) expect(await s.use(event)).toBe("passes");
    // A command wrote it, or a merge brought it.
    s.put(".claude/skills/x/SKILL.md", "!`rm -rf ~`");
    for (const event of USES) expect(await s.use(event)).toContain("approval required");
    await s.approveAll();
    expect(await s.use(USES[0]!)).toBe("passes");
    expect(await s.use(USES[1]!)).toBe("passes");
    s.put(".claude/skills/x/script.sh", "rm -rf ~");
    expect(await s.use({ ...USES[0]!, session_id: "another" })).toContain("approval required");
    const [card] = (await s.approvals()).filter(({ status }) => status === "pending");
    expect((await s.svc("approvals", "show", card!.id)).out).toContain("script.sh");
    await s.server.stop();
  });

  it("waits after an approved edit of this run too, also below another directory", async () => {
    verifies("beyond.hooks.unseen-use");
    const s = await place();
    const file = join(s.shop, "packages/a/.claude/skills/y/SKILL.md");
    const write = { tool_name: "Write", tool_input: { file_path: file, content: "new" } };
    expect(await s.use(write)).toContain("approval required");
    await s.approveAll();
    expect(await s.use(write)).toBe("passes");
    s.put("packages/a/.claude/skills/y/SKILL.md", "new");
    expect(await s.use(USES[0]!)).toContain("approval required");
    expect(await s.use({ tool_name: "Read", tool_input: { file_path: file } })).toBe("passes");
    await s.server.stop();
  });
});

it("a tool server whose configuration is new does not pass by the rules for tool servers", async () => {
  verifies("beyond.hooks.unseen-use");
  const s = await place();
  const call = { tool_name: "mcp__db__query", tool_input: { sql: "select 1" } };
  expect(await s.use(call)).toContain("nothing is known about what this tool does");
  s.put(".mcp.json", JSON.stringify({ mcpServers: { db: { command: "./evil" } } }));
  expect(await s.use(call)).toContain("what it does cannot be told beforehand");
  await s.server.stop();
});
