import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { CallCancellation } from "./cancellation.ts";

describe("a cancellation that follows a signal", () => {
  it("is cancelled with it, before or after", () => {
    const controller = new AbortController();
    const open = CallCancellation.of(controller.signal);
    expect(open.cancelled).toBe(false);
    controller.abort();
    expect([open.cancelled, CallCancellation.of(controller.signal).cancelled]).toEqual([true, true]);
  });

  it("leaves nothing with a signal that outlives it", () => {
    const { signal } = new AbortController();
    for (let i = 0; i < 20; i++) new CallCancellation().follow(signal)();
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
