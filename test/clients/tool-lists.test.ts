/** The tables of tools against what each real client offers its model. */
import { describe, expect, it } from "vitest";
import { unknownFields } from "../../src/hook/clients/tool-fields.ts";
import { toolKind } from "../../src/hook/clients/tool-kinds.ts";
import { verifies } from "../support/verifies.ts";
import { CHOSEN_CLIENTS } from "./support/chosen.ts";
import { governedClient } from "./support/governed.ts";
import { CLIENT_PACKAGES, installClient, installedVersion, type RealClient } from "./support/install.ts";
import type { OfferedTool, ScriptedTurnOrder } from "./support/model-server.ts";

/** Names under which the hook gets a tool of Codex: without the dot of its group, and `Bash` for commands. */
const hookName = ({ name }: OfferedTool): string => name.replace(".", "");

/** Arguments of further sessions, in which the client offers other tools. */
const MODELS: Record<RealClient, string[][]> = {
  gemini: [[]],
  codex: [[], ["-c", 'model="gpt-5.5"']],
  "claude-code": [[]],
};

/** Fields that mean another program, a terminal or another source than the judged call. A call with one asks. */
const ASKING_FIELDS = ["Monitor.ws", "exec_command.shell", "exec_command.tty"];

/** Claude Code lists the tools that it loads later in a text. */
const LATER = /deferred tools are now available[\s\S]*?calling them directly will fail[^\n]*\n([\w\n]+)/;

describe.each(CHOSEN_CLIENTS)("%s", (client) => {
  it("is installed at the pinned version", async () => {
    verifies("beyond.clients.installed");
    expect(installedVersion(await installClient(client))).toBe(CLIENT_PACKAGES[client].version);
  });

  it("has every tool that it offers in the tables, with every field", async () => {
    verifies("beyond.clients.tool-list");
    const agent = await governedClient(client);
    const offered = new Map<string, OfferedTool>();
    for (const args of MODELS[client]) {
      const first = await agent.session([], { args });
      const listed = first.requests.flatMap(({ texts }) =>
        texts.flatMap((text) => LATER.exec(text)?.[1]?.trim().split("\n") ?? []),
      );
      for (const name of listed) if (!offered.has(name)) offered.set(name, { name, fields: [] });
      const load = listed.length === 0 ? [] : [loading([...new Set(listed)])];
      const seen = load.length === 0 ? first : await agent.session(load, { args });
      for (const tool of seen.requests.flatMap(({ tools }) => tools)) offered.set(hookName(tool), tool);
    }
    expect(offered.size).toBeGreaterThan(10);
    const unlisted = [...offered.keys()].filter((name) => toolKind(name) === undefined);
    const strange = [...offered].flatMap(([name, { fields }]) =>
      unknownFields(client, name, Object.fromEntries((fields ?? []).map((field) => [field, ""]))).map(
        (field) => `${name}.${field}`,
      ),
    );
    expect({ unlisted, strange }).toEqual({
      unlisted: [],
      strange: strange.filter((field) => ASKING_FIELDS.includes(field)),
    });
  });
});

const loading = (names: string[]): ScriptedTurnOrder => ({
  calls: [{ tool: "ToolSearch", input: { query: `select:${names.join(",")}`, max_results: 100 } }],
});
