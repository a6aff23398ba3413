/** The same session of a real coding agent with and without `svc run`: its questions, its records, and its undo. */
import { describe, expect, it } from "vitest";
import { program } from "../support/programs.ts";
import { verifies } from "../support/verifies.ts";
import { CALLS } from "./support/calls.ts";
import { CHOSEN_CLIENTS } from "./support/chosen.ts";
import { governedClient } from "./support/governed.ts";

await program("bubblewrap");
await program("openssl");

const UNKNOWN = 'node -e \'require("fs").writeFileSync("made.txt", "by a script")\'';

describe.each(CHOSEN_CLIENTS)("%s", (client) => {
  const { shell, write } = CALLS[client];

  async function session(confined: boolean) {
    const agent = await governedClient(client, {
      files: { "src/a.txt": "one\n" },
      connect: ["--hold", "0"],
    });
    const before = agent.files();
    const seen = await agent.session(
      [
        { calls: [shell("cat src/a.txt")] },
        { calls: [write("notes.txt", "written by the agent\n", agent.workspace)] },
        { calls: [shell(UNKNOWN)] },
        { calls: [shell("rm README.md")] },
        { calls: [shell("cat .env")] },
      ],
      confined ? { confined: true } : {},
    );
    const { approvals = [] } = JSON.parse((await agent.svc("approvals", "list", "--json")).out || "{}");
    const run = (await agent.runs()).find(({ run_id }) => run_id.startsWith(client))!;
    const steps = (await agent.steps(run.run_id)).map(({ tool, status }) => `${tool} ${status}`);
    const files = agent.files();
    const undone = await agent.svc("rollback", run.run_id);
    return {
      asked: approvals.map(({ tool }: { tool: string }) => tool).sort(),
      steps,
      files,
      before,
      after: agent.files(),
      results: seen.results,
      said: `${seen.out}${seen.err}${undone.out}`,
    };
  }

  it("asks about an unknown command outside, and not inside; both are governed and undone", async () => {
    verifies("beyond.run.real-agent");
    const outside = await session(false);
    expect(outside.asked, outside.said).toEqual(["code.shell_destructive", "code.shell_unknown"]);
    expect(outside.steps).toEqual(["code.shell_read succeeded", "code.edit succeeded"]);
    expect(outside.after).toEqual(outside.before);

    const inside = await session(true);
    // The model's host is named, and every other connection of the client still asks.
    const asked = inside.asked.filter((tool: string) => tool !== "net.connect");
    expect(asked, inside.said).toEqual(["code.shell_destructive"]);
    expect(inside.steps).toEqual([
      "code.shell_read succeeded",
      "code.edit succeeded",
      "code.shell_unknown succeeded",
    ]);
    expect(inside.files).toMatchObject({ "made.txt": "by a script", "README.md": "shop\n" });
    expect(inside.after).toEqual(inside.before);
    for (const { results } of [outside, inside]) expect(results.join()).toContain(".env holds credentials");
  });
});
