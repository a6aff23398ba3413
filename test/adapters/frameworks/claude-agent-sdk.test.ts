/** The Claude Agent SDK with its own executable, which talks to a scripted model: permissions, pauses, delegation. */
import { cpSync } from "node:fs";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type CanUseTool,
  govern,
  type SessionOptions,
  threadRun,
} from "../../../src/adapters/claude-agent-sdk.ts";
import type { Run } from "../../../src/index.ts";
import { askBroker } from "../../support/broker.ts";
import { tempDir } from "../../support/tmp.ts";
import { until } from "../../support/until.ts";
import { verifies } from "../../support/verifies.ts";
import { runGuide } from "../support/guide.ts";
import { MessagesApi } from "../support/messages-api.ts";
import type { Call } from "../support/model.ts";
import { openWorld, type World } from "../support/world.ts";

const HERE = await askBroker("frameworks");
const { createSdkMcpServer, query, tool } = await import("@anthropic-ai/claude-agent-sdk");

let world: World;
const api = new MessagesApi();
beforeAll(async () => {
  [world] = await Promise.all([openWorld(), api.start()]);
});
afterAll(() => {
  api.close();
  return world?.close();
});

/** Tools of the session's own server, which the SDK can run concurrently. */
const server = () =>
  createSdkMcpServer({
    name: "notes",
    alwaysLoad: true,
    tools: Object.entries(world.code).map(([name, code]) =>
      tool(
        name.slice("notes_".length),
        name,
        { text: z.string().optional(), id: z.string().optional() },
        async (args) => ({ content: [{ type: "text", text: JSON.stringify(await code(args)) ?? "" }] }),
        { annotations: { readOnlyHint: true } },
      ),
    ),
  });
/** The agent that another delegates to is a tool of the SDK, under its own manifest. */
const name = (tool: string) =>
  tool.startsWith("mcp__") ? tool.replace("mcp__notes__", "notes_") : "notes_hang";
const calls = (...all: [tool: string, args?: object][]): Call[] =>
  all.map(([tool, args = {}]) => [`mcp__notes__${tool}`, args]);

interface More {
  govern?: SessionOptions;
  options?: Options;
}
/** One session from its start to its end; `result` is the SDK's last word. */
async function session(run: Run, turns: Call[][], { govern: governing = {}, options = {} }: More = {}) {
  const { model, told } = api.saying("done", turns);
  const governed = govern(run, { name, ...governing });
  const given: Options = {
    ...governed,
    model,
    env: api.env(),
    cwd: tempDir("claude-cwd"),
    settingSources: [],
    mcpServers: { notes: server() },
    allowedTools: ["mcp__notes"],
    ...options,
  };
  let result: { session_id: string; stop_reason: string | null; text: string } | undefined;
  const types: string[] = [];
  try {
    for await (const message of query({ prompt: "go", options: given })) {
      types.push(message.type);
      if (message.type === "result")
        result = { ...message, text: message.subtype === "success" ? message.result : message.subtype };
    }
  } catch (error) {
    if (!options.abortController?.signal.aborted) throw error;
  }
  return { result, told, types, governed };
}

describe("takeback/claude-agent-sdk", () => {
  it("makes the allowed calls, in parallel, denies with reasons and hints, and reports thrown errors", async () => {
    verifies(
      "beyond.adapter.newest",
      "beyond.adapter.claude-agent-sdk",
      "beyond.adapter.allowed",
      "beyond.adapter.blocked",
      "beyond.adapter.errors",
      "beyond.adapter.streaming",
    );
    const run = await world.run();
    const both = calls(["add", { text: "a" }], ["add", { text: "b" }]);
    const turns = [both, calls(["wipe"]), calls(["break"]), calls(["send"])];
    const { result, told, types } = await session(run, turns, {
      options: { includePartialMessages: true },
      govern: { wait_for_approval: 0 },
    });
    expect(result?.text).toBe("done");
    expect(types).toContain("stream_event");
    expect(told[1]!.match(/\{\\"id\\":\\"n\d+\\"\}/g)).toHaveLength(2);
    expect(told[2]).toContain("blocked: nothing is wiped. Instead: remove one note");
    expect(told[3]).toContain("the disk is full");
    expect(told[4]).toContain("is pending");
    expect(world.ran.notes_wipe).toBeUndefined();
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded", "failed"]);
    expect((await run.plan()).actions.filter(({ kind }) => kind === "compensate")).toHaveLength(2);
  });

  it("asks as the SDK asks, leaves nothing behind, and passes nothing that was refused or changed there", async () => {
    verifies(
      "beyond.adapter.claude-agent-sdk",
      "beyond.adapter.waiting",
      "beyond.adapter.previews",
      "beyond.adapter.credential",
    );
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    const answers: Awaited<ReturnType<CanUseTool>>[] = [
      { behavior: "deny", message: "not now" },
      { behavior: "allow" },
      { behavior: "allow", updatedInput: { text: "e" } },
      { behavior: "deny", message: "never" },
      { behavior: "allow", updatedInput: { text: "z" } },
    ];
    const steps: string[][] = [];
    const canUseTool: CanUseTool = async () => {
      steps.push(await world.steps(run));
      return answers.shift()!;
    };
    const onApproval: SessionOptions["onApproval"] = ({ approval_id }) => world.decide(approval_id);
    const sends = ["c", "c", "d"].map((text) => calls(["send", { text }]));
    const { told } = await session(
      run,
      [...sends, calls(["add", { text: "x" }]), calls(["add", { text: "y" }])],
      {
        govern: { canUseTool, onApproval },
        options: { allowedTools: [] },
      },
    );
    expect(told[1]).toContain("not now");
    expect(told[2]).toMatch(/\{\\"id\\":\\"n\d+\\"\}/);
    expect(told[4]).toContain("never");
    expect(steps.slice(0, 3)).toEqual([[], [], ["succeeded"]]);
    expect(world.ran.notes_send).toBe(sent + 2);
    expect([...world.notes.values()].slice(-3)).toEqual(["c", "e", "z"]);
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded", "failed", "failed", "succeeded"]);
  });

  it("defers, and another process makes the call once after the decision", async () => {
    verifies("beyond.adapter.waiting", "beyond.adapter.once");
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    const [cwd, home] = [tempDir("claude-cwd"), tempDir("claude")];
    const on = (config: string): Options => ({ cwd, env: api.env(config) });
    const { result, governed } = await session(run, [calls(["send", { text: "f" }])], { options: on(home) });
    expect(result?.stop_reason).toBe("tool_deferred");
    expect(await world.steps(run)).toEqual([]);
    expect(governed.waiting).toMatchObject([{ tool: "notes_send", args: { text: "f" } }]);
    await world.decide(governed.waiting[0]!.approval_id);
    // The second is of a process that died before the SDK had noted that the call was made.
    for (const [again, told_of] of [
      [tempDir("claude"), /\{\\"id\\":\\"n\d+\\"\}/],
      [tempDir("claude"), /was used already/],
    ] as const) {
      cpSync(home, again, { recursive: true });
      const options = { ...on(again), resume: result!.session_id };
      const { told } = await session(await world.svc.attach(run.run_id), [], { options });
      expect(told.join()).toMatch(told_of);
    }
    expect(world.ran.notes_send).toBe(sent + 1);
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("makes no call that the SDK's own permissions refuse, or that cannot be decided on", async () => {
    verifies("beyond.adapter.claude-agent-sdk", "beyond.adapter.undecided");
    const run = await world.run();
    const added = world.ran.notes_add ?? 0;
    await session(run, [calls(["add"])], { options: { allowedTools: [] } });
    expect(await world.steps(run)).toEqual(["failed"]);
    const gone = await openWorld();
    const its = await gone.run();
    await gone.close();
    const { told } = await session(its, [calls(["add"])]);
    expect(told[1]).toContain("blocked: no decision could be made");
    expect(world.ran.notes_add ?? 0).toBe(added);
  });

  it("counts a call that takes too long as uncertain, and one in progress when the session was cut short", async () => {
    verifies("beyond.adapter.timeout");
    const [late, lost] = [await world.run(), await world.run()];
    const hung = world.ran.notes_hang ?? 0;
    const abortController = new AbortController();
    const options: Options = { abortController };
    const both = Promise.all([
      session(late, [calls(["hang"])], { options, govern: { timeout_ms: 1 } }),
      session(lost, [calls(["hang"])], { options }),
    ]);
    await until(() => world.ran.notes_hang === hung + 2, "two calls under way");
    await until(async () => (await world.steps(late))[0] === "uncertain", "the end of the time");
    abortController.abort();
    for (const { governed } of await both) await governed.end();
    for (const run of [late, lost]) expect(await world.steps(run)).toEqual(["uncertain"]);
  });

  it("governs an agent that another delegates to, and undoes the whole session in one call", async () => {
    verifies("beyond.adapter.nested", "beyond.adapter.threads", "beyond.adapter.undo");
    const there = [...world.notes.keys()];
    const run = await threadRun(world.svc, "session-nested", { actor: "bot", permissions: ["p"] });
    const helper = api.saying("helped", [calls(["wipe"]), calls(["send"]), calls(["add", { text: "g" }])]);
    const delegate: Call = [
      "Agent",
      { description: "help", prompt: "help", subagent_type: "helper", run_in_background: false },
    ];
    const agents = { helper: { description: "helps", prompt: "help", model: helper.model } };
    const { told } = await session(run, [calls(["add", { text: "h" }]), [delegate]], { options: { agents } });
    expect(helper.told.join()).toContain("nothing is wiped");
    expect(helper.told.join()).toContain("is pending");
    expect(told.at(-1)).toContain("helped");
    const undone = await run.rollback({
      compensator: ({ args }) => world.code.notes_remove!(args as object),
    });
    expect(undone.compensated).toHaveLength(2);
    expect([...world.notes.keys()]).toEqual(there);
  });

  it("does what its guide shows", async () => {
    verifies("beyond.adapter.guide");
    const refunds: Call[][] = [600, 300, 300].map((amount) => [["mcp__shop__refund", { amount }]]);
    const { model, told } = api.saying("refunded in two parts", refunds);
    const settings = { ...api.env(), ANTHROPIC_MODEL: model };
    const { printed, shown } = await runGuide("claude-agent-sdk", model, { installed: HERE, settings });
    expect(printed).toBe(shown);
    expect(told[1]).toContain("refund in two parts");
  });
});
