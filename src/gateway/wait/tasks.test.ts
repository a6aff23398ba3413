import { describe, expect, it } from "vitest";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { systemEnv } from "../../kernel/env.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import { TaskRegistry } from "./tasks.ts";

const who = (id: string) => ({ id }) as CallerPrincipal;
const WAIT = { message: "m", wait_ms: 1_000, inputRequests: null };

describe("tasks", () => {
  it("are a hundred of one principal at once, and room is made by those that end", async () => {
    const tasks = new TaskRegistry(systemEnv, {} as ServiceLogger);
    const begin = (id: string) =>
      tasks.begin(who(id), WAIT, async ({ cancellation }) => {
        await new Promise<void>((resolve) => void cancellation.onCancel(resolve));
        return null;
      });
    const begun = Array.from({ length: 100 }, () => begin("a")!);
    expect(begin("a")).toBeNull();
    expect(begin("b")).not.toBeNull();
    await tasks.giveUp(begun[0]!);
    expect(begin("a")).not.toBeNull();
  });

  it("are listed in pages, each its principal's own", async () => {
    const tasks = new TaskRegistry(systemEnv, {} as ServiceLogger);
    const begin = async (id: string) => {
      const task = tasks.begin(who(id), WAIT, async () => null)!;
      await task.over;
      return task.id;
    };
    const mine: string[] = [];
    for (let i = 0; i < 101; i++) mine.push(await begin("a"));
    await begin("b");
    const first = tasks.list(who("a"), undefined);
    expect([first.tasks.map(({ id }) => id), first.next]).toEqual([mine.slice(0, 100), mine[99]]);
    const second = tasks.list(who("a"), first.next);
    expect([second.tasks.map(({ id }) => id), second.next]).toEqual([mine.slice(100), null]);
    expect(() => tasks.list(who("b"), first.next)).toThrow("unknown cursor");
  });

  it("keep what they were asked for out of an unexpected failure", async () => {
    const said: unknown[] = [];
    const tasks = new TaskRegistry(systemEnv, {
      error: (...line: unknown[]) => said.push(line),
    } as unknown as ServiceLogger);
    const task = tasks.begin(who("a"), WAIT, () => Promise.reject(new Error("secret")))!;
    await task.over;
    expect(task.end).toMatchObject({ status: "failed", error: { code: -32_603 } });
    expect(JSON.stringify(task.end)).not.toContain("secret");
    expect(said).toHaveLength(1);
  });
});
