/**
 * The hooks for the Claude Agent SDK, called in the order and with the input that its documentation gives
 * (`@anthropic-ai/claude-agent-sdk` 0.3). By hand, not recorded.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as claude from "../../src/adapters/claude-agent-sdk.ts";
import type { GovernOptions } from "../../src/adapters/governor.ts";
import { verifies } from "../support/verifies.ts";
import type { ScriptedModel } from "./support/claude-agent-sdk.ts";
import { runGuide } from "./support/guide.ts";
import { openWorld, type World } from "./support/world.ts";

let world: World;
let ids = 0;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world?.close());

/** Refunds in two parts once it reads that one is too much. */
function refunding(tool: string): ScriptedModel & { told: string[] } {
  const amounts = [600, 300, 300];
  const told: string[] = [];
  const next = (news: unknown) => {
    told.push(JSON.stringify(news));
    const amount = amounts.shift();
    return amount === undefined ? { text: "refunded in two parts" } : { tool, args: { amount } };
  };
  return { next, told };
}

describe("takeback/claude-agent-sdk", () => {
  /** As the SDK calls its hooks around a tool; answers why the call was not made, where it was not. */
  async function call(
    session: claude.GovernedSession,
    tool_name: string,
    tool_input: Record<string, string>,
    { tool_use_id = `toolu_${++ids}`, prompts = false, crash = false } = {},
  ): Promise<string | undefined> {
    const about = { tool_name, tool_input, tool_use_id };
    const [told_before] = session.hooks.PreToolUse[0]!.hooks;
    const { hookSpecificOutput: told } = await told_before({ hook_event_name: "PreToolUse", ...about });
    if (told?.permissionDecision === "deny") return told.permissionDecisionReason;
    if (prompts || told?.permissionDecision === "ask") {
      const { signal } = new AbortController();
      const answer = await session.canUseTool!(tool_name, tool_input, { signal, toolUseID: tool_use_id });
      if (answer.behavior === "deny") return answer.message;
    }
    if (crash) return undefined;
    try {
      const made = await world.code[tool_name]!(tool_input);
      const tool_response = [{ type: "text", text: JSON.stringify(made) }];
      const [told_after] = session.hooks.PostToolUse[0]!.hooks;
      await told_after({ hook_event_name: "PostToolUse", ...about, tool_response });
    } catch (error) {
      const [told_after] = session.hooks.PostToolUseFailure[0]!.hooks;
      await told_after({ hook_event_name: "PostToolUseFailure", ...about, error: (error as Error).message });
    }
    return undefined;
  }
  const yes: claude.CanUseTool = async () => ({ behavior: "allow" });
  const no: claude.CanUseTool = async () => ({ behavior: "deny", message: "not now" });
  const onApproval: GovernOptions["onApproval"] = ({ approval_id }) => world.decide(approval_id);

  it("reports what is carried out or fails, and denies with reasons and hints", async () => {
    verifies("beyond.adapter.claude-agent-sdk", "beyond.adapter.allowed", "beyond.adapter.blocked");
    const run = await world.run();
    const session = claude.govern(run);
    expect(await call(session, "notes_add", { text: "e" })).toBeUndefined();
    expect(await call(session, "notes_wipe", {})).toBe("blocked: nothing is wiped. Instead: remove one note");
    await call(session, "notes_break", {});
    expect(await world.steps(run)).toEqual(["succeeded", "failed"]);
    expect((await run.plan()).actions).toMatchObject([
      { kind: "compensate", args: { id: expect.any(String) } },
    ]);
  });

  it("asks as the SDK asks, leaves nothing behind, and decides with the person's credential", async () => {
    verifies("beyond.adapter.waiting", "beyond.adapter.previews", "beyond.adapter.once");
    const run = await world.run();
    const sent = world.ran.notes_send ?? 0;
    expect(await call(claude.govern(run, { canUseTool: no, onApproval }), "notes_send", { text: "f" })).toBe(
      "not now",
    );
    expect(await world.steps(run)).toEqual([]);
    const session = claude.govern(run, { canUseTool: yes, onApproval });
    const tool_use_id = "toolu_once";
    expect(await call(session, "notes_send", { text: "g" }, { tool_use_id })).toBeUndefined();
    expect(await call(session, "notes_send", { text: "g" }, { tool_use_id })).toContain("was used already");
    expect(world.ran.notes_send).toBe(sent + 1);
    expect(await call(claude.govern(run), "notes_send", { text: "h" })).toContain("is pending");
  });

  it("does not pass what the SDK's own prompt refuses or changes, and tells of what was lost", async () => {
    verifies("beyond.adapter.claude-agent-sdk");
    const run = await world.run();
    await call(claude.govern(run, { canUseTool: no }), "notes_add", { text: "i" }, { prompts: true });
    const changed: claude.CanUseTool = async () => ({ behavior: "allow", updatedInput: { text: "k" } });
    await call(claude.govern(run, { canUseTool: changed }), "notes_add", { text: "j" }, { prompts: true });
    const lost = claude.govern(run);
    await call(lost, "notes_add", { text: "l" }, { crash: true });
    await lost.hooks.SessionEnd[0]!.hooks[0]({ hook_event_name: "SessionEnd" });
    expect(await world.steps(run)).toEqual(["failed", "failed", "succeeded", "uncertain"]);
  });

  it("does what its guide shows", async () => {
    verifies("beyond.adapter.guide");
    const model = refunding("mcp__shop__refund");
    const stand_ins = { "@anthropic-ai/claude-agent-sdk": "claude-agent-sdk.ts" };
    const { printed, shown } = await runGuide("claude-agent-sdk", model, { stand_ins });
    expect(printed).toBe(shown);
    expect(model.told[1]).toContain("refund in two parts");
  });
});
