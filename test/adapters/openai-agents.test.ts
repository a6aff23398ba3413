/** The OpenAI Agents SDK's own runner with a scripted model: interruptions, serialized state and records. */
import { Agent, type Model, type ModelResponse, Runner, RunState, tool, Usage } from "@openai/agents";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type GovernOptions,
  governedTool,
  type RunOrContext,
  threadRun,
  undo,
} from "../../src/adapters/openai-agents.ts";
import { verifies } from "../support/verifies.ts";
import { runGuide } from "./support/guide.ts";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world?.close());

const parameters = z.object({ text: z.string().default(""), id: z.string().default("") });
const definitions = () =>
  Object.entries(world.code).map(([name, execute]) => ({ name, description: name, parameters, execute }));

type Call = [tool: string, args: object];
interface Thread {
  thread: string;
}
let ids = 0;
const called = ([name, args]: Call): ModelResponse["output"][number] => ({
  type: "function_call",
  callId: `call-${++ids}`,
  name,
  arguments: JSON.stringify(args),
  status: "completed",
});
/** Calls what each turn says, all at once, and ends with a word. */
function saying(text: string, turns: Call[][]): Model {
  const left = [...turns];
  const getResponse = async (): Promise<ModelResponse> => {
    const word = {
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text }],
    } as const;
    const output = left.shift()?.map(called) ?? [{ type: "message", ...word, content: [...word.content] }];
    return { usage: new Usage(), output, responseId: `response-${++ids}` };
  };
  return {
    getResponse,
    async *getStreamedResponse() {
      const { output, responseId } = await getResponse();
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      yield { type: "response_done", response: { id: responseId!, output: output as never, usage } };
    },
  };
}
const scripted = (...turns: Call[][]) => saying("done", turns);
const agentOf = (run: RunOrContext<Thread>, turns: Call[][], options: GovernOptions = {}) =>
  new Agent<Thread>({
    name: "bot",
    model: scripted(...turns),
    tools: definitions().map((definition) =>
      governedTool<typeof parameters, Thread>(run, definition, options),
    ),
  });
const runner = new Runner({ tracingDisabled: true });
const context = { thread: "t" };
/** The prompt of each call to the model. */
const told = ({ newItems }: { newItems: { type: string; rawItem?: unknown }[] }) =>
  newItems
    .filter(({ type }) => type === "tool_call_output_item")
    .map(({ rawItem }) => JSON.stringify((rawItem as { output: unknown }).output));

describe("takeback/openai-agents", () => {
  it("makes the allowed calls, and records the tool's own value", async () => {
    verifies("beyond.adapter.openai-agents", "beyond.adapter.allowed");
    const run = await world.run();
    const turn: Call[] = [
      ["notes_add", { text: "a" }],
      ["notes_add", { text: "b" }],
    ];
    const result = await runner.run(agentOf(run, [turn]), "go", { context });
    expect(result.finalOutput).toBe("done");
    expect((await run.plan()).actions).toMatchObject([
      { kind: "compensate", args: { id: expect.any(String) } },
      { kind: "compensate", args: { id: expect.any(String) } },
    ]);
  });

  it("answers a blocked call with reasons and hints, and the model continues", async () => {
    verifies("beyond.adapter.blocked");
    const run = await world.run();
    const result = await runner.run(agentOf(run, [[["notes_wipe", {}]], [["notes_add", {}]]]), "go", {
      context,
    });
    expect(told(result)[0]).toContain("nothing is wiped");
    expect(told(result)[0]).toContain("remove one note");
    expect(result.finalOutput).toBe("done");
    expect(world.ran.notes_wipe).toBeUndefined();
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("pauses with an interruption, survives a serialised state, and carries out once", async () => {
    verifies(
      "beyond.adapter.waiting",
      "beyond.adapter.previews",
      "beyond.adapter.once",
      "beyond.adapter.credential",
    );
    const run = await world.run();
    const asked: string[] = [];
    const onApproval: GovernOptions["onApproval"] = ({ approval_id, tool }) => {
      asked.push(tool);
      return world.decide(approval_id);
    };
    const turn: Call[] = [
      ["notes_send", { text: "c" }],
      ["notes_add", { text: "d" }],
    ];
    const paused = await runner.run(agentOf(run, [turn], { onApproval }), "go", { context });
    expect(paused.interruptions).toHaveLength(1);
    expect(world.ran.notes_send).toBeUndefined();
    const kept = paused.state.toString();
    const resume = async () => {
      const agent = agentOf(await world.svc.attach(run.run_id), [], { onApproval });
      const state = await RunState.fromString(agent, kept);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      return runner.run(agent, state);
    };
    const result = await resume();
    expect(result.finalOutput).toBe("done");
    expect(world.ran.notes_send).toBe(1);
    expect(told(await resume()).join()).toContain("was used already");
    expect(world.ran.notes_send).toBe(1);
    expect(asked).toEqual(["notes_send"]);
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
  });

  it("does not carry out what a person rejects, in the SDK or with a credential", async () => {
    verifies("beyond.adapter.denied");
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    const onApproval: GovernOptions["onApproval"] = ({ approval_id }) => world.decide(approval_id, "deny");
    const turns: Call[][] = [[["notes_send", { text: "e" }]], [["notes_send", { text: "f" }]]];
    const agent = agentOf(run, turns, { onApproval });
    const first = await runner.run(agent, "go", { context });
    first.state.reject(first.interruptions[0]!);
    const second = await runner.run(agent, first.state);
    second.state.approve(second.interruptions[0]!);
    const end = await runner.run(agent, second.state);
    expect(told(end).at(-1)).toContain("denied by ann: seen");
    expect(world.ran.notes_send ?? 0).toBe(sent);
    expect(await world.steps(run)).toEqual([]);
  });

  it("reports what a tool throws, and the SDK treats it as always", async () => {
    verifies("beyond.adapter.errors");
    const run = await world.run();
    const result = await runner.run(agentOf(run, [[["notes_break", {}]]]), "go", { context });
    expect(result.finalOutput).toBe("done");
    expect(await world.steps(run)).toEqual(["failed"]);
  });

  it("counts a timeout as uncertain", async () => {
    verifies("beyond.adapter.timeout");
    const run = await world.run();
    const agent = agentOf(run, [[["notes_hang", {}]]], { timeout_ms: 1 });
    expect((await runner.run(agent, "go", { context })).finalOutput).toBe("done");
    expect(await world.steps(run)).toEqual(["uncertain"]);
  });

  it("streams, and governs an agent that is another's tool", async () => {
    verifies("beyond.adapter.nested", "beyond.adapter.streaming");
    const run = await world.run();
    const helper = agentOf(run, [[["notes_wipe", {}]], [["notes_add", { text: "g" }]]]);
    const asTool = helper.asTool({ toolName: "help", toolDescription: "helps" });
    const outer = new Agent<Thread>({
      name: "outer",
      model: scripted([["help", { input: "go" }]]),
      tools: [asTool],
    });
    const streamed = await runner.run(outer, "go", { context, stream: true });
    for await (const _ of streamed);
    expect(streamed.finalOutput).toBe("done");
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("finds the run of a thread in the SDK's context, and undoes it in one call", async () => {
    verifies("beyond.adapter.threads", "beyond.adapter.undo");
    const there = [...world.notes.keys()];
    const of = (thread: string) => threadRun(world.svc, thread, { actor: "bot", permissions: ["p"] });
    for (const text of ["h", "i"])
      await runner.run(
        agentOf(({ context }) => of(context.thread), [[["notes_add", { text }]]]),
        "go",
        { context: { thread: "thread-oa" } },
      );
    expect(world.notes.size).toBe(there.length + 2);
    expect((await undo(await of("thread-oa"), definitions())).compensated).toHaveLength(2);
    expect([...world.notes.keys()]).toEqual(there);
  });

  it("keeps the types of the SDK's own tools", () => {
    verifies("beyond.adapter.types");
    const definition = {
      name: "typed",
      description: "",
      parameters,
      execute: ({ text }: { text: string }) => text,
    };
    const plain = tool(definition);
    const governed: typeof plain = governedTool(null as never, definition);
    expect(governed.parameters).toEqual(plain.parameters);
  });

  it("does what its guide shows", async () => {
    verifies("beyond.adapter.guide");
    const turns: Call[][] = [600, 300, 300].map((amount) => [["refund", { amount }]]);
    const { printed, shown } = await runGuide("openai-agents", saying("refunded in two parts", turns));
    expect(printed).toBe(shown);
  });
});
