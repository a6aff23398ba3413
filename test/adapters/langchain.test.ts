/** LangChain's own agent on LangGraph with a scripted model: interrupts, resumes, messages and records. */
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type GovernOptions,
  govern,
  type RunOrThread,
  threadRun,
  undo,
} from "../../src/adapters/langchain.ts";
import { verifies } from "../support/verifies.ts";
import { runGuide } from "./support/guide.ts";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world?.close());

const schema = z.object({ text: z.string().optional(), id: z.string().optional() });
const toolsOf = () =>
  Object.entries(world.code).map(([name, code]) => tool(code, { name, description: name, schema }));

type Call = [tool: string, args: object];
let ids = 0;
function scripted(...turns: Call[][]) {
  const model = fakeModel();
  for (const calls of turns)
    model.respondWithTools(calls.map(([name, args]) => ({ name, args: { ...args }, id: `call-${++ids}` })));
  return model.respond(new AIMessage("done"));
}

const checkpointer = new MemorySaver();
const agentOf = (run: RunOrThread, turns: Call[][], options: GovernOptions = {}) =>
  createAgent({
    model: scripted(...turns),
    tools: toolsOf(),
    middleware: [govern(run, options)],
    checkpointer,
  });
const go = () => ({ messages: [new HumanMessage("go")] });
const on = (thread_id: string) => ({ configurable: { thread_id } });
const told = ({ messages }: { messages: BaseMessage[] }) =>
  messages.filter((message) => message.type === "tool").map(({ content }) => String(content));
const pausedOn = (result: unknown) =>
  (result as { __interrupt__?: { id: string; value: { approval_id: string } }[] }).__interrupt__!;

describe("takeback/langchain", () => {
  it("makes the allowed calls, and records the tool's own value", async () => {
    verifies("beyond.adapter.langchain", "beyond.adapter.allowed");
    const run = await world.run();
    const turn: Call[] = [
      ["notes_add", { text: "a" }],
      ["notes_add", { text: "b" }],
    ];
    const result = await agentOf(run, [turn]).invoke(go(), on("allowed"));
    expect(result.messages.at(-1)!.content).toBe("done");
    expect(told(result).map((text) => Object.keys(JSON.parse(text)))).toEqual([["id"], ["id"]]);
    const { actions } = await run.plan();
    expect(actions).toMatchObject([
      { kind: "compensate", args: { id: expect.any(String) } },
      { kind: "compensate", args: { id: expect.any(String) } },
    ]);
  });

  it("answers a blocked call with reasons and hints, and the agent continues", async () => {
    verifies("beyond.adapter.blocked");
    const run = await world.run();
    const result = await agentOf(run, [[["notes_wipe", {}]], [["notes_add", {}]]]).invoke(
      go(),
      on("blocked"),
    );
    expect(JSON.parse(told(result)[0]!)).toEqual({
      blocked: true,
      reasons: ["nothing is wiped"],
      hints: ["remove one note"],
    });
    expect(result.messages.at(-1)!.content).toBe("done");
    expect(await world.steps(run)).toEqual(["succeeded"]);
    expect(world.ran.notes_wipe).toBeUndefined();
  });

  it("interrupts the graph, and another process makes the call once after the decision", async () => {
    verifies("beyond.adapter.waiting", "beyond.adapter.once", "beyond.adapter.previews");
    const run = await world.run();
    const turn: Call[] = [
      ["notes_send", { text: "c" }],
      ["notes_add", { text: "d" }],
    ];
    const added = world.ran.notes_add ?? 0;
    const [asked] = pausedOn(await agentOf(run, [turn]).invoke(go(), on("waits")));
    expect(asked!.value).toEqual({
      approval_id: expect.stringMatching(/^apr_/),
      tool: "notes_send",
      args: { text: "c" },
      reasons: [expect.any(String), expect.stringContaining(asked!.value.approval_id)],
    });
    expect(world.ran.notes_send).toBeUndefined();
    expect(await world.steps(run)).toEqual(["succeeded"]);
    await world.decide(asked!.value.approval_id);
    const again = await world.svc.attach(run.run_id);
    const result = await agentOf(again, []).invoke(new Command({ resume: true }), on("waits"));
    expect(told(result).every((text) => /^\{"id":"n\d+"\}$/.test(text))).toBe(true);
    expect(world.ran).toMatchObject({ notes_send: 1, notes_add: added + 1 });
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
  });

  it("lets `onApproval` decide with what the graph was resumed with, and opens no second request", async () => {
    verifies("beyond.adapter.credential", "beyond.adapter.denied");
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    const decided: string[] = [];
    const onApproval: GovernOptions["onApproval"] = ({ approval_id }, answer) => {
      decided.push(approval_id);
      return world.decide(approval_id, answer === "yes" ? "approve" : "deny");
    };
    const turns: Call[][] = [[["notes_send", { text: "e" }]], [["notes_send", { text: "f" }]]];
    const agent = agentOf(run, turns, { onApproval });
    await agent.invoke(go(), on("answers"));
    const second = await agent.invoke(new Command({ resume: "no" }), on("answers"));
    expect(told(second as never)[0]).toContain("denied by ann: seen");
    const end = await agent.invoke(new Command({ resume: "yes" }), on("answers"));
    expect(told(end)[1]).toMatch(/^\{"id":/);
    expect(new Set(decided).size).toBe(2);
    expect(world.ran.notes_send).toBe(sent + 1);
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("reports what a tool throws, and the agent continues as without a middleware", async () => {
    verifies("beyond.adapter.errors");
    const run = await world.run();
    const wrong: Call = ["notes_add", { text: 7 }];
    const result = await agentOf(run, [[["notes_break", {}]], [wrong]]).invoke(go(), on("throws"));
    expect(told(result)[0]).toContain("Error: the disk is full");
    expect(told(result)[1]).toContain("did not match expected schema");
    expect(await world.steps(run)).toEqual(["failed", "failed"]);
  });

  it("counts a timeout as uncertain, streams, and governs an agent that is another's tool", async () => {
    verifies("beyond.adapter.timeout", "beyond.adapter.streaming", "beyond.adapter.nested");
    const run = await world.run();
    const hung = agentOf(run, [[["notes_hang", {}]]], { timeout_ms: 1 });
    expect(told(await hung.invoke(go(), on("hangs")))[0]).toContain("within 1 ms");
    const helper = agentOf(run, [[["notes_wipe", {}]], [["notes_add", { text: "i" }]]]);
    const help = tool(async () => told(await helper.invoke(go(), on("inner"))).join(" then "), {
      name: "help",
      description: "helps",
      schema: z.object({}),
    });
    const outer = createAgent({ model: scripted([["help", {}]]), tools: [help], checkpointer });
    const seen: string[] = [];
    for await (const part of await outer.stream(go(), { ...on("outer"), streamMode: "updates" }))
      seen.push(JSON.stringify(part));
    expect(seen).toHaveLength(3);
    expect(seen[1]).toMatch(/nothing is wiped.* then .*n\d+/);
    expect(await world.steps(run)).toEqual(["uncertain", "succeeded"]);
  });

  it("finds the run of the thread, and undoes it in one call", async () => {
    verifies("beyond.adapter.threads", "beyond.adapter.undo");
    const there = [...world.notes.keys()];
    const of = (thread: string) => threadRun(world.svc, thread, { actor: "bot", permissions: ["p"] });
    const model = fakeModel();
    for (const text of ["g", "h"])
      model
        .respondWithTools([{ name: "notes_add", args: { text }, id: `call-${++ids}` }])
        .respond(new AIMessage("done"));
    const agent = createAgent({ model, tools: toolsOf(), middleware: [govern(of)], checkpointer });
    for (const _ of ["g", "h"]) await agent.invoke(go(), on("thread-lc"));
    expect(world.notes.size).toBe(there.length + 2);
    const report = await undo(await of("thread-lc"), toolsOf());
    expect(report.compensated).toHaveLength(2);
    expect([...world.notes.keys()]).toEqual(there);
    const nowhere = createAgent({
      model: scripted([["notes_add", {}]]),
      tools: toolsOf(),
      middleware: [govern(of)],
    });
    await expect(nowhere.invoke(go())).rejects.toThrow("thread_id");
  });

  it("keeps the types of the agent, its tools and its context", async () => {
    verifies("beyond.adapter.types");
    const given = {
      model: scripted([["notes_add", { text: "j" }]]),
      tools: toolsOf(),
      contextSchema: z.object({ user: z.string() }),
    };
    const governed = createAgent({ ...given, middleware: [govern(await world.run())] });
    const plain = createAgent(given);
    const invoke: typeof plain.invoke = (...input) => governed.invoke(...input);
    const result = await invoke(go(), { context: { user: "ann" } });
    expect(told(result)).toEqual([expect.stringMatching(/^\{"id":"n\d+"\}$/)]);
    // @ts-expect-error what the context holds is still known
    await expect(governed.invoke(go(), { context: { user: 7 } })).rejects.toThrow();
  });

  it("does what its guide shows", async () => {
    verifies("beyond.adapter.guide");
    const model = fakeModel();
    for (const amount of [600, 300, 300])
      model.respondWithTools([{ name: "refund", args: { amount }, id: `g${++ids}` }]);
    const { printed, shown } = await runGuide(
      "langchain",
      model.respond(new AIMessage("refunded in two parts")),
    );
    expect(printed).toBe(shown);
  });
});
