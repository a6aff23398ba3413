/** Mastra's own agent with a scripted model: suspended runs, delegation, streams and records. */
import type { Agent } from "@mastra/core/agent";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type GovernOptions,
  governedTool,
  type RunOrThread,
  threadRun,
  undo,
} from "../../../src/adapters/mastra.ts";
import { askBroker } from "../../support/broker.ts";
import { verifies } from "../../support/verifies.ts";
import { runGuide } from "../support/guide.ts";
import { type Call, saying } from "../support/model.ts";
import { openWorld, type World } from "../support/world.ts";

const HERE = await askBroker("frameworks");
const { Mastra } = await import("@mastra/core");
const { Agent: MastraAgent } = await import("@mastra/core/agent");
const { RequestContext } = await import("@mastra/core/request-context");
const { InMemoryStore } = await import("@mastra/core/storage");
const { createTool } = await import("@mastra/core/tools");

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world?.close());

const inputSchema = z.object({ text: z.string().optional(), id: z.string().optional() });
const definitions = () =>
  Object.entries(world.code).map(([id, execute]) => ({ id, description: id, inputSchema, execute }));
const storage = new InMemoryStore();

interface More extends GovernOptions {
  agents?: Record<string, Agent>;
}
/** As a process that starts would make it: nothing but the storage is shared. */
function agentOf(run: RunOrThread, turns: Call[][], { agents = {}, ...options }: More = {}) {
  const model = saying("done", turns);
  const governed = definitions().map((one) => [one.id, createTool(governedTool(run, one, options))]);
  const tools = Object.fromEntries(governed) as Record<string, ReturnType<typeof createTool>>;
  const agent: Agent = new MastraAgent({
    id: "bot",
    name: "bot",
    description: "helps",
    instructions: "",
    model,
    tools,
    agents,
  });
  new Mastra({ agents: { bot: agent, ...agents }, storage, logger: false });
  return { agent, told: model.told };
}
const memory = (thread: string) => ({ memory: { thread, resource: "ann" } });
interface Suspended {
  runId?: string | undefined;
  suspendPayload?: { toolCallId: string; suspendPayload: unknown };
}
const suspended = ({ runId, suspendPayload }: Suspended) => ({
  asked: suspendPayload!.suspendPayload as { approval_id: string },
  at: { runId: runId!, toolCallId: suspendPayload!.toolCallId },
});

describe("takeback/mastra", () => {
  it("makes the allowed calls, in parallel, answers blocked ones, and reports thrown errors", async () => {
    verifies(
      "beyond.adapter.mastra",
      "beyond.adapter.allowed",
      "beyond.adapter.blocked",
      "beyond.adapter.errors",
    );
    const run = await world.run();
    const both: Call[] = [
      ["notes_add", { text: "a" }],
      ["notes_add", { text: "b" }],
    ];
    const { agent, told } = agentOf(run, [both, [["notes_wipe", {}]], [["notes_break", {}]]]);
    expect((await agent.generate("go")).text).toBe("done");
    expect(told[1]!.match(/"value":\{"id":"n\d+"\}/g)).toHaveLength(2);
    const refusal = { blocked: true, reasons: ["nothing is wiped"], hints: ["remove one note"] };
    expect(told[2]).toContain(JSON.stringify(refusal));
    expect(told[3]).toContain("the disk is full");
    expect(world.ran.notes_wipe).toBeUndefined();
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded", "failed"]);
    expect((await run.plan()).actions.filter(({ kind }) => kind === "compensate")).toHaveLength(2);
  });

  it("suspends, and another process makes the call once after the decision", async () => {
    verifies("beyond.adapter.waiting", "beyond.adapter.previews", "beyond.adapter.once");
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    const turn: Call[] = [
      ["notes_send", { text: "c" }],
      ["notes_add", { text: "d" }],
    ];
    const paused = await agentOf(run, [turn]).agent.generate("go");
    expect(paused.finishReason).toBe("suspended");
    const { asked, at } = suspended(paused);
    expect(asked).toEqual({
      approval_id: expect.stringMatching(/^apr_/),
      tool: "notes_send",
      args: { text: "c" },
      reasons: ["a person looks at what is sent", expect.stringContaining(asked.approval_id)],
    });
    expect(await world.steps(run)).toEqual(["succeeded"]);
    const workflows = (await storage.getStore("workflows"))!;
    const { runs } = await workflows.listWorkflowRuns();
    const kept = runs
      .filter(({ runId }) => runId === at.runId)
      .map((one) => structuredClone({ ...one, snapshot: one.snapshot as never }));
    await world.decide(asked.approval_id);
    const resume = async () => {
      const { agent, told } = agentOf(await world.svc.attach(run.run_id), []);
      return { text: (await agent.resumeGenerate({ decided: true }, at)).text, told: told.at(-1) };
    };
    expect(await resume()).toEqual({ text: "done", told: expect.stringMatching(/"value":\{"id":"n\d+"\}/) });
    expect(world.ran.notes_send).toBe(sent + 1);
    // It died before Mastra had noted that the call was made.
    for (const one of kept) await workflows.persistWorkflowSnapshot(one);
    expect((await resume()).told).toContain("was used already");
    expect(world.ran.notes_send).toBe(sent + 1);
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
  });

  it("lets `onApproval` decide with what the run was resumed with, while it streams", async () => {
    verifies("beyond.adapter.credential", "beyond.adapter.denied", "beyond.adapter.streaming");
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    const onApproval: GovernOptions["onApproval"] = ({ approval_id }, answer) =>
      world.decide(approval_id, (answer as { ok: boolean }).ok ? "approve" : "deny");
    const turns: Call[][] = [[["notes_send", { text: "e" }]], [["notes_send", { text: "f" }]]];
    const { agent, told } = agentOf(run, turns, { onApproval });
    const seen = async ({ fullStream, runId }: Awaited<ReturnType<typeof agent.stream>>) => {
      const parts: { type: string; payload?: { toolCallId?: string } }[] = [];
      for await (const part of fullStream) parts.push(part as never);
      const { toolCallId } = parts.find(({ type }) => type === "tool-call-suspended")?.payload ?? {};
      return { types: parts.map(({ type }) => type), at: { runId: runId!, toolCallId: toolCallId! } };
    };
    const first = await seen(await agent.stream("go"));
    expect(first.types).toContain("tool-call-suspended");
    const second = await seen(await agent.resumeStream({ ok: false }, first.at));
    expect(told.at(-1)).toContain("denied by ann: seen");
    const end = await seen(await agent.resumeStream({ ok: true }, second.at));
    expect(end.types).toEqual(expect.arrayContaining(["tool-result", "text-delta", "finish"]));
    expect(world.ran.notes_send).toBe(sent + 1);
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("counts a timeout as uncertain", async () => {
    verifies("beyond.adapter.timeout");
    const run = await world.run();
    const { agent, told } = agentOf(run, [[["notes_hang", {}]]], { timeout_ms: 1 });
    expect((await agent.generate("go")).text).toBe("done");
    expect(told.at(-1)).toContain("did not answer within 1 ms");
    expect(await world.steps(run)).toEqual(["uncertain"]);
  });

  it("governs an agent that another delegates to, which suspends the whole, under the same thread", async () => {
    verifies("beyond.adapter.nested", "beyond.adapter.threads", "beyond.adapter.undo");
    const there = [...world.notes.keys()];
    const of = (thread: string) => threadRun(world.svc, thread, { actor: "bot", permissions: ["p"] });
    const on = {
      ...memory("thread-nested"),
      requestContext: new RequestContext([["takeback_thread", "thread-nested"]]),
    };
    const inner = agentOf(of, [[["notes_wipe", {}]], [["notes_send", { text: "g" }]]]);
    const turns: Call[][] = [[["notes_add", { text: "h" }]], [["agent-helper", { prompt: "go" }]]];
    const outer = agentOf(of, turns, { agents: { helper: inner.agent } });
    const { asked, at } = suspended(await outer.agent.generate("go", on));
    expect(inner.told.at(-1)).toContain("nothing is wiped");
    const { approval_id } = (asked as unknown as { suspendPayload: typeof asked }).suspendPayload;
    await world.decide(approval_id);
    expect((await outer.agent.resumeGenerate({ decided: true }, { ...at, ...on })).text).toBe("done");
    const run = await of("thread-nested");
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
    expect((await undo(run, definitions())).compensated).toHaveLength(2);
    expect([...world.notes.keys()]).toEqual(there);
    const nowhere = agentOf(of, [[["notes_add", {}]]]);
    await nowhere.agent.generate("go");
    expect(nowhere.told.at(-1)).toContain("call the agent with memory");
  });

  it("does what its guide shows", async () => {
    verifies("beyond.adapter.guide");
    const turns: Call[][] = [600, 300, 300].map((amount) => [["refund", { amount }]]);
    const model = saying("refunded in two parts", turns);
    const { printed, shown } = await runGuide("mastra", model, { installed: HERE });
    expect(printed).toBe(shown);
    expect(model.told[1]).toContain("no refunds over 500");
  });
});
