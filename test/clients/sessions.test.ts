/** Sessions of real coding agents: governed, held, refused without a service, undone. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { CALLS } from "./support/calls.ts";
import { CHOSEN_CLIENTS } from "./support/chosen.ts";
import { governedClient } from "./support/governed.ts";

describe.each(CHOSEN_CLIENTS)("%s", (client) => {
  const { shell, write } = CALLS[client];

  it("is governed before each call, waits for a person, and its edits are undone byte for byte", async () => {
    verifies(
      "beyond.clients.governed",
      "beyond.clients.held",
      "beyond.clients.undone",
      "beyond.clients.reconciled",
    );
    const agent = await governedClient(client, { files: { "src/a.txt": "one\r\ntwo" } });
    const before = agent.files();
    const edit = write("notes/new.txt", "written by the agent\n", agent.workspace);
    const remove = shell("rm README.md");
    let stopApproving = async (): Promise<string[]> => [];
    let refused = "";
    const seen = await agent.session([
      { calls: [shell("cat src/a.txt")] },
      { calls: [edit] },
      { calls: [shell("cat .env")] },
      () => {
        refused = Object.keys(agent.files()).join();
        stopApproving = agent.approveAll();
        return { calls: [remove] };
      },
      // A hook that cannot wait has refused the call, which now is approved.
      async () => {
        await stopApproving();
        return "README.md" in agent.files() ? { calls: [remove] } : { calls: [shell("ls src")] };
      },
    ]);
    expect(await stopApproving()).toHaveLength(1);
    expect(seen.results[0]).toContain("two");
    expect(seen.results[2]).toContain(".env holds credentials");
    expect(refused).toContain("README.md");
    expect(agent.files()).toEqual({ "src/a.txt": "one\r\ntwo", "notes/new.txt": "written by the agent\n" });
    const steps = await agent.steps();
    expect(steps.slice(0, 3).map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      "code.shell_read succeeded",
      "code.edit succeeded",
      "code.shell_destructive succeeded",
    ]);

    const [run] = await agent.runs();
    // The client's own transcript names the same calls.
    const compared = await agent.svc("reconcile", run!.run_id, "--dir", join(agent.config, ".."));
    expect([compared.out, compared.code]).toEqual([expect.stringContaining(": equal: "), 0]);
    const undone = await agent.svc("rollback", run!.run_id);
    expect(undone.out).toContain("compensated:");
    expect(agent.files()).toEqual(agent.undoesCommands ? before : { "src/a.txt": "one\r\ntwo" });
  });

  it("makes no call while the service is down", async () => {
    verifies("beyond.clients.refused-when-down");
    const agent = await governedClient(client);
    const before = agent.files();
    await agent.stopService();
    const seen = await agent.session([
      { calls: [shell("ls")] },
      { calls: [write("a.txt", "x\n", agent.workspace)] },
      { calls: [shell("rm README.md")] },
    ]);
    expect(seen.results).toHaveLength(3);
    for (const result of seen.results) expect(result).toContain("the service cannot be reached");
    expect(agent.files()).toEqual(before);
  });
});
