/** From version 7 on, the AI SDK asks for approvals separately from the tools. The rest is tested with both versions. */
import { join } from "node:path";
import type { ModelMessage } from "ai";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { govern } from "../../../src/adapters/ai-sdk.ts";
import { askBroker } from "../../support/broker.ts";
import { verifies } from "../../support/verifies.ts";
import { saying } from "../support/model.ts";
import { openWorld } from "../support/world.ts";

const HERE = await askBroker("frameworks");
// By its place: the name would be looked up when this file is read, where version 6 is found if these are not installed yet.
const { generateText, isStepCount, tool }: typeof import("ai") = await import(
  join(HERE, "node_modules", "ai", "dist", "index.js")
);

it("asks a person, or denies with reasons, before a call is executed", async () => {
  verifies("beyond.adapter.ai-sdk-7");
  const world = await openWorld();
  onTestFinished(() => world.close());
  const run = await world.run();
  const inputSchema = z.object({ text: z.string().optional() });
  const { notes_add, notes_send, notes_wipe } = world.code;
  const given = {
    notes_add: tool({ inputSchema, execute: notes_add! }),
    notes_send: tool({ inputSchema, execute: notes_send! }),
    notes_wipe: tool({ inputSchema, execute: notes_wipe! }),
  };
  const model = saying("done", [
    [
      ["notes_add", { text: "a" }],
      ["notes_wipe", {}],
    ],
    [["notes_send", { text: "b" }]],
  ]);
  const messages: ModelMessage[] = [{ role: "user", content: "go" }];
  const go = async () => {
    const { tools, toolApproval } = govern(await world.svc.attach(run.run_id), given as never, {
      onApproval: ({ approval_id }) => world.decide(approval_id),
    });
    return generateText({ model, tools, toolApproval, messages, stopWhen: isStepCount(9) });
  };
  messages.push(...(await go()).responseMessages);
  expect(model.told[1]).toContain("blocked: nothing is wiped. Instead: remove one note");
  expect(await world.steps(run)).toEqual(["succeeded"]);
  const asked = messages.at(-1)!.content as { type: string; approvalId: string }[];
  const { approvalId } = asked.find(({ type }) => type === "tool-approval-request")!;
  messages.push({
    role: "tool",
    content: [{ type: "tool-approval-response", approvalId, approved: true }],
  });
  const kept = [...messages];
  expect((await go()).text).toBe("done");
  expect(model.told.at(-1)).toMatch(/"value":\{"id":"n\d+"\}/);
  // Resumed a second time from the same state, it is not made again.
  messages.splice(0, messages.length, ...kept);
  await go();
  expect(model.told.at(-1)).toContain("was used already");
  expect(world.ran).toEqual({ notes_add: 1, notes_send: 1 });
  expect(await world.steps(run)).toEqual(["succeeded", "succeeded"]);
});
