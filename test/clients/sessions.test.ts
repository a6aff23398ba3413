/** Sessions of real coding agents: governed, held, refused without a service, undone. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { verifies } from "../support/verifies.ts";
import { CALLS } from "./support/calls.ts";
import { CHOSEN_CLIENTS, PROVES_ALL_CLIENTS } from "./support/chosen.ts";
import { governedClient } from "./support/governed.ts";
import type { ScriptedTurn } from "./support/model-server.ts";

/** Starts a command in a terminal and types into it, as Codex's models do. */
const typed = (cmd: string, chars: string): ScriptedTurn => ({
  calls: [
    {
      tool: "exec",
      input: `const r = await tools.exec_command({cmd: ${JSON.stringify(cmd)}, tty: true, yield_time_ms: 1500});
text("started " + JSON.stringify(r));
if (r.session_id !== undefined) {
  const w = await tools.write_stdin({session_id: r.session_id, chars: ${JSON.stringify(chars)}, yield_time_ms: 1500});
  text("typed " + JSON.stringify(w));
}`,
    },
  ],
});

const TIMED_CALLS = PROVES_ALL_CLIENTS ? 10 : 2;
const median = (values: readonly number[]): number =>
  Math.round([...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!);

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

  it("shows what the hook adds to a call", async () => {
    verifies("beyond.clients.added-time");
    const agent = await governedClient(client);
    // Gemini CLI stops a model that repeats itself.
    const turns = Array.from({ length: TIMED_CALLS + 1 }, (_, n) => ({ calls: [shell(`echo call ${n}`)] }));
    // The first call of a session starts processes.
    const perCall = async () => {
      const { requests, results } = await agent.session(turns);
      expect(results).toHaveLength(turns.length);
      return requests.slice(2).map(({ after_ms = 0 }) => after_ms);
    };
    const governed = await perCall();
    expect(await agent.steps()).toHaveLength(turns.length);
    const undone = await svc(["connect", client, "--hooks", "--undo"], {
      cwd: agent.workspace,
      env: { HOME: agent.home },
    });
    expect([undone.err, undone.code]).toEqual(["", 0]);
    const free = await perCall();
    expect(await agent.steps()).toHaveLength(turns.length);
    const [with_ms, without_ms] = [median(governed), median(free)];
    console.log(`${client}: a call takes ${with_ms} ms with the hook, ${without_ms} ms without`);
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

  // Only Codex types into the terminal of an earlier command, and has no hook event for that.
  if (client === "codex")
    it("types into no program that would obey it", async () => {
      verifies("beyond.clients.typed");
      const agent = await governedClient("codex", {
        connect: ["--hold", "0"],
        files: { "over.txt": "kept\n" },
      });
      agent.git("config", "user.name", "ann");
      agent.git("config", "user.email", "ann@shop.test");
      // The person's own editor.
      agent.git("config", "core.editor", "ed");
      const before = agent.files();
      const { results } = await agent.session([
        typed("less over.txt", "!rm over.txt\n\n"),
        typed("man ls", "!rm over.txt\n\n"),
        typed("vi over.txt", ":!rm over.txt\n\n"),
        typed("git commit --allow-empty", "!rm over.txt\n"),
        typed("bash", "rm over.txt\n"),
        typed("python3", "import os; os.remove('over.txt')\n"),
        typed("cat", "rm over.txt\n"),
      ]);
      expect(results).toHaveLength(7);
      for (const result of results.slice(0, 6)) expect(result).toMatch(/approval required|svc: /);
      // What runs does not obey: the text went through.
      expect(results[6]).toContain("typed ");
      expect(agent.files()).toEqual(before);
    });
});
