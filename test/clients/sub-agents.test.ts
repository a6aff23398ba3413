/** Sub-agents of real coding agents: each is a child run of its session, and both are undone together. */
import { describe, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { CALLS } from "./support/calls.ts";
import { CHOSEN_CLIENTS } from "./support/chosen.ts";
import { governedClient, MAIN } from "./support/governed.ts";

const SECOND = "do the second job";
/** Its hook events name the session alone, so the calls of a sub-agent are in the session's run. */
const NAMES_NO_AGENT = "gemini";

describe.each(CHOSEN_CLIENTS)("%s", (client) => {
  const { write, agent: delegate } = CALLS[client];

  it("has the calls of a sub-agent in a child run, and undoes both runs", async () => {
    verifies("beyond.clients.sub-agents");
    const agent = await governedClient(client);
    const before = agent.files();
    await agent.session({
      [MAIN]: [
        { calls: [write("main.txt", "main\n", agent.workspace)] },
        ...delegate(SECOND).map((call) => ({ calls: [call] })),
      ],
      [SECOND]: [{ calls: [write("sub.txt", "sub\n", agent.workspace)] }],
    });
    expect(agent.files()).toEqual({ ...before, "main.txt": "main\n", "sub.txt": "sub\n" });
    const ids = (await agent.runs()).map(({ run_id }) => run_id).toSorted();
    const shown = await Promise.all(
      ids.map(async (id) => JSON.parse((await agent.svc("show", id, "--json")).out)),
    );
    const lines = shown.map(({ steps }) =>
      steps.map(({ line }: { line: string }) => line).filter((line: string) => line.startsWith("Edit ")),
    );
    if (client === NAMES_NO_AGENT) {
      expect(lines).toEqual([["Edit main.txt", "Edit sub.txt"]]);
    } else {
      expect(lines).toEqual([["Edit main.txt"], ["Edit sub.txt"]]);
      expect(shown[1].parent).toBe(ids[0]);
      expect(shown[0].children).toEqual([ids[1]]);
    }
    const undone = await agent.svc("rollback", ids[0]!, "--children");
    expect(undone.code, undone.out).toBe(0);
    expect(agent.files()).toEqual(before);
  });
});
