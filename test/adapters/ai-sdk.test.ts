/** The AI SDK's own loop with a scripted model: the answers that the model gets, the calls that run, the records. */
import { generateText, type ModelMessage, stepCountIs, streamText, tool } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type GovernOptions, govern, threadRun } from "../../src/adapters/ai-sdk.ts";
import type { Run } from "../../src/index.ts";
import { verifies } from "../support/verifies.ts";
import { runGuide } from "./support/guide.ts";
import { type Call, saying } from "./support/model.ts";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world?.close());

const input = z.object({ text: z.string().optional(), id: z.string().optional() });
const toolsOf = () => ({
  notes_add: tool({ inputSchema: input, execute: world.code.notes_add! }),
  notes_send: tool({ inputSchema: input, execute: world.code.notes_send! }),
  notes_wipe: tool({ inputSchema: input, execute: world.code.notes_wipe! }),
  notes_break: tool({ inputSchema: input, execute: world.code.notes_break! }),
  notes_remove: tool({ inputSchema: input, execute: world.code.notes_remove! }),
});

const scripted = (...turns: Call[][]) => saying("done", turns);

function agent(run: Run, turns: Call[][], options: GovernOptions = {}) {
  const { tools, undo } = govern(run, toolsOf(), options);
  const model = scripted(...turns);
  const messages: ModelMessage[] = [{ role: "user", content: "go" }];
  const go = async () => {
    const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(9) });
    messages.push(...saidIn(result));
    return result;
  };
  return { go, messages, undo, tools, model };
}

/** What a run added to the conversation; `ai` 7 has that elsewhere. */
function saidIn(result: { response: { messages: ModelMessage[] } }): ModelMessage[] {
  return (result as { responseMessages?: ModelMessage[] }).responseMessages ?? result.response.messages;
}
/** The last prompt of each call to the model. */
const told = (messages: ModelMessage[]) =>
  messages.flatMap((message) =>
    message.role === "tool"
      ? message.content.flatMap((part) => (part.type === "tool-result" ? [part.output] : []))
      : [],
  );
/** Answers every question that the SDK asks. */
function answer(messages: ModelMessage[], approved: boolean): void {
  const last = messages.at(-1) as { content: { type: string; approvalId: string }[] };
  const asked = last.content.filter(({ type }) => type === "tool-approval-request");
  expect(asked.length).toBeGreaterThan(0);
  messages.push({
    role: "tool",
    content: asked.map(({ approvalId }) => ({ type: "tool-approval-response", approvalId, approved })),
  });
}

describe("takeback/ai-sdk", () => {
  it("makes the allowed calls, in parallel, and records the tool's own value", async () => {
    verifies("beyond.adapter.ai-sdk", "beyond.adapter.allowed");
    const run = await world.run();
    const { go, messages } = agent(run, [
      [
        ["notes_add", { text: "a" }],
        ["notes_add", { text: "b" }],
      ],
    ]);
    expect((await go()).text).toBe("done");
    const made = { type: "json", value: { id: expect.stringMatching(/^n/) } };
    expect(told(messages)).toMatchObject([made, made]);
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
    const { actions } = await run.plan();
    expect(actions.map((action) => action.kind)).toEqual(["compensate", "compensate"]);
  });

  it("answers a blocked call with reasons and hints, and the model continues", async () => {
    verifies("beyond.adapter.blocked");
    const run = await world.run();
    const { go, messages } = agent(run, [[["notes_wipe", {}]], [["notes_add", { text: "c" }]]]);
    expect((await go()).text).toBe("done");
    expect(told(messages)[0]).toMatchObject({
      type: "json",
      value: { blocked: true, reasons: ["nothing is wiped"], hints: ["remove one note"] },
    });
    expect(world.ran.notes_wipe).toBeUndefined();
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("makes no call whose arguments cannot be evaluated unchanged, and the model continues", async () => {
    verifies("beyond.adapter.undecided");
    const run = await world.run();
    const added = world.ran.notes_add ?? 0;
    const refusal = { blocked: true, reasons: [expect.stringMatching(/^the call cannot be evaluated: /)] };
    const { go, messages, tools } = agent(run, [[["notes_add", { text: "\ud83d" }]]]);
    expect((await go()).text).toBe("done");
    expect(told(messages)).toMatchObject([{ type: "json", value: refusal }]);
    // A schema may make such values of what the model said.
    for (const value of [10n, new Map([["to", "x"]]), new Set(["x"]), Number.NaN, 2 ** 60]) {
      const given = { toolCallId: `call-${typeof value}`, messages: [] };
      const answered = await tools.notes_add.execute!({ text: value as never }, given as never);
      expect(answered).toMatchObject(refusal);
    }
    expect(world.ran.notes_add ?? 0).toBe(added);
    expect(await world.steps(run)).toEqual([]);
  });

  it("pauses as the SDK does, leaves nothing behind, and carries out once after a decision", async () => {
    verifies("beyond.adapter.waiting", "beyond.adapter.previews", "beyond.adapter.once");
    const run = await world.run();
    const before = world.ran.notes_send ?? 0;
    const asked: string[] = [];
    const onApproval: GovernOptions["onApproval"] = ({ approval_id, tool, args, reasons }) => {
      asked.push(`${tool} ${JSON.stringify(args)} ${reasons[0]}`);
      return world.decide(approval_id);
    };
    const { messages, model, go } = agent(run, [[["notes_send", { text: "d" }]]], { onApproval });
    await go();
    expect(await world.steps(run)).toEqual([]);
    answer(messages, true);
    // Another process continues from the messages alone.
    const again = JSON.parse(JSON.stringify(messages)) as ModelMessage[];
    const resume = async (run: Run) => {
      const { tools } = govern(run, toolsOf(), { onApproval });
      return generateText({ model, tools, messages: again, stopWhen: stepCountIs(9) });
    };
    const first = await resume(await world.svc.attach(run.run_id));
    expect(told(saidIn(first))).toMatchObject([{ type: "json", value: { id: expect.stringMatching(/^n/) } }]);
    expect(asked).toEqual(['notes_send {"text":"d"} a person looks at what is sent']);
    expect(world.ran.notes_send).toBe(before + 1);
    // Resumed a second time from the same state, it is not made again.
    const second = await resume(await world.svc.attach(run.run_id));
    expect(JSON.stringify(told(saidIn(second)))).toContain("was used already");
    expect(world.ran.notes_send).toBe(before + 1);
    expect(asked).toHaveLength(1);
    expect(await world.steps(run)).toEqual(["succeeded"]);
  });

  it("does not carry out what a person denies, there or here, and opens no second request", async () => {
    verifies("beyond.adapter.denied");
    const run = await world.run();
    const before = world.ran.notes_send ?? 0;
    const there = agent(run, [[["notes_send", { text: "e" }]]]);
    await there.go();
    answer(there.messages, false);
    await there.go();
    const ids: string[] = [];
    const onApproval: GovernOptions["onApproval"] = ({ approval_id }) => {
      ids.push(approval_id);
      return world.decide(approval_id, "deny");
    };
    const here = agent(run, [[["notes_send", { text: "f" }]]], { onApproval });
    await here.go();
    answer(here.messages, true);
    const resumed = [...here.messages];
    await here.go();
    expect(JSON.stringify(told(here.messages))).toContain("denied by ann: seen");
    await generateText({ model: scripted(), tools: here.tools, messages: resumed });
    expect(ids).toHaveLength(1);
    expect(world.ran.notes_send ?? 0).toBe(before);
    expect(await world.steps(run)).toEqual([]);
  });

  it("decides nothing where nobody was asked, or where the person may not", async () => {
    verifies("beyond.adapter.credential");
    const run = await world.run();
    const onApproval: GovernOptions["onApproval"] = ({ approval_id }) =>
      world.svc.approvals.approve(approval_id, { key: "nobody" });
    const { go, messages, tools } = agent(run, [[["notes_send", { text: "g" }]]], { onApproval });
    const alone = await tools.notes_send.execute!({ text: "g" }, { toolCallId: "x", messages: [] });
    expect(alone).toMatchObject({ blocked: true, approval_id: expect.stringMatching(/^apr_/) });
    await go();
    answer(messages, true);
    await go();
    expect(JSON.stringify(told(messages))).toContain("the approval was not given");
    expect(await world.steps(run)).toEqual([]);
  });

  it("reports what a tool throws, and the SDK tells the model as always", async () => {
    verifies("beyond.adapter.errors");
    const run = await world.run();
    const { go, messages } = agent(run, [[["notes_break", {}]]]);
    await go();
    expect(told(messages)).toMatchObject([
      { type: "error-text", value: expect.stringContaining("the disk is full") },
    ]);
    expect(await world.steps(run)).toEqual(["failed"]);
  });

  it("makes a call of the same id once, tries a failed one again, and counts a timeout as uncertain", async () => {
    verifies("beyond.adapter.once", "beyond.adapter.timeout");
    const run = await world.run();
    const call = { toolCallId: "same", messages: [] };
    const { tools } = govern(run, toolsOf());
    expect(await tools.notes_add.execute!({ text: "m" }, call)).toMatchObject({ id: expect.any(String) });
    expect(await tools.notes_add.execute!({ text: "m" }, call)).toMatchObject({
      reasons: ["this call was already made as step 0 (succeeded) and is not repeated"],
    });
    for (const _ of [1, 2]) await expect(tools.notes_break.execute!({}, call)).rejects.toThrow("disk");
    const never = { notes_add: tool({ inputSchema: input, execute: () => new Promise<string>(() => {}) }) };
    const slow = govern(run, never, { timeout_ms: 1 });
    await expect(slow.tools.notes_add.execute!({}, { ...call, toolCallId: "slow" })).rejects.toThrow(
      "within 1 ms",
    );
    expect(await world.steps(run)).toEqual(["succeeded", "failed", "failed", "uncertain"]);
  });

  it("streams, and a tool that yields continues yielding", async () => {
    verifies("beyond.adapter.streaming");
    const run = await world.run();
    async function* slowly() {
      yield { at: "half" };
      yield world.code.notes_add!({ text: "h" });
    }
    const given = { notes_add: tool({ inputSchema: input, execute: slowly }) };
    const { tools } = govern(run, given);
    const result = streamText({
      model: scripted([["notes_add", {}]]),
      tools,
      prompt: "go",
      stopWhen: stepCountIs(9),
    });
    const outputs: unknown[] = [];
    for await (const part of result.fullStream) if (part.type === "tool-result") outputs.push(part.output);
    expect(outputs[0]).toEqual({ at: "half" });
    expect(outputs.at(-1)).toMatchObject({ id: expect.stringMatching(/^n/) });
    expect((await run.plan()).actions).toMatchObject([
      { kind: "compensate", args: outputs.at(-1) as object },
    ]);
  });

  it("governs an agent that is another's tool, and keeps the types of its tools", async () => {
    verifies("beyond.adapter.nested", "beyond.adapter.types");
    const run = await world.run();
    const inner = agent(run, [[["notes_wipe", {}]], [["notes_add", { text: "k" }]]]);
    const given = {
      help: tool({
        inputSchema: z.object({ about: z.string() }),
        execute: async () => (await inner.go()).text,
      }),
    };
    const outer = govern(run, given, { name: () => "notes_break" });
    const tools: typeof given = outer.tools;
    const model = scripted([["help", { about: "k" }]]);
    const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
    const output: string | undefined = result.steps[0]!.staticToolResults[0]?.output;
    expect(output).toBe("done");
    expect(JSON.stringify(told(inner.messages))).toContain("nothing is wiped");
    expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
    // @ts-expect-error what the tool takes is still known
    const wrong: Parameters<NonNullable<typeof tools.help.execute>>[0] = { about: 7 };
    expect(wrong).toBeDefined();
  });

  it("undoes a whole thread in one call", async () => {
    verifies("beyond.adapter.undo", "beyond.adapter.threads");
    const options = { actor: "bot", permissions: ["p"] };
    const thread = "thread-ai-sdk";
    const there = [...world.notes.keys()];
    for (const text of ["i", "j"])
      await agent(await threadRun(world.svc, thread, options), [[["notes_add", { text }]]]).go();
    expect([...world.notes.values()]).toEqual(expect.arrayContaining(["i", "j"]));
    const report = await agent(await threadRun(world.svc, thread, options), []).undo();
    expect(report.compensated).toHaveLength(2);
    expect([...world.notes.keys()]).toEqual(there);
  });

  it("does what its guide shows", async () => {
    verifies("beyond.adapter.guide");
    const turns: Call[][] = [600, 300, 300].map((amount) => [["refund", { amount }]]);
    const { printed, shown } = await runGuide("ai-sdk", saying("refunded in two parts", turns));
    expect(printed).toBe(shown);
  });
});
