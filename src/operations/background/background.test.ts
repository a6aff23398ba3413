import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLogger } from "../../telemetry/log.ts";
import { lineSink } from "../../telemetry/sink.ts";
import { BackgroundTasks } from "./background.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a task that fails", () => {
  it("is reported when it begins, when its cause changes, each minute, and when it ends", async () => {
    const lines: string[] = [];
    const sink = lineSink((line) => {
      const { level, msg, error } = JSON.parse(line);
      lines.push([level, msg, error].join(": "));
    });
    const log = createLogger({}, { sink });
    const background = new BackgroundTasks(log);
    let trouble: string | undefined = "the disk is away";
    background.every(1_000, "sweeping", async () => {
      if (trouble !== undefined) throw new Error(trouble);
    });
    await vi.advanceTimersByTimeAsync(50_000);
    expect(lines).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(lines).toHaveLength(2);
    trouble = "the disk is full";
    await vi.advanceTimersByTimeAsync(5_000);
    trouble = undefined;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(lines).toEqual([
      "warn: sweeping failed: the disk is away",
      "warn: sweeping failed: the disk is away",
      "warn: sweeping failed: the disk is full",
      "info: sweeping works again: ",
    ]);
    await background.stop(0);
  });
});
