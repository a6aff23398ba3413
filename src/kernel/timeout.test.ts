import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { fakeEnv } from "../../test/support/env.ts";
import { withTimeout } from "./timeout.ts";

const never = new Promise<never>(() => {});
const tooLate = () => {
  throw new Error("too late");
};

describe("within", () => {
  it("is the result of the work, and leaves no sleeper and no listener behind", async () => {
    const env = fakeEnv();
    const { signal } = new AbortController();
    expect(await withTimeout(Promise.resolve(7), 1_000, tooLate, { env, signal })).toBe(7);
    await expect(
      withTimeout(Promise.reject(new Error("broke")), 1_000, tooLate, { env, signal }),
    ).rejects.toThrow("broke");
    expect(env.sleepers).toBe(0);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("is what late says or throws when the time is over, and not before", async () => {
    const env = fakeEnv();
    let said: unknown = "nothing yet";
    const said_late = withTimeout(never, 1_000, () => "late", { env }).then((word) => {
      said = word;
    });
    const thrown = expect(withTimeout(never, 1_000, tooLate, { env })).rejects.toThrow("too late");
    await env.advance(999);
    expect(said).toBe("nothing yet");
    await env.advance(1);
    await Promise.all([said_late, thrown]);
    expect(said).toBe("late");
  });

  it("gives up when its signal aborts, and lets go of it", async () => {
    const env = fakeEnv();
    const stop = new AbortController();
    const waiting = expect(withTimeout(never, 1_000, tooLate, { env, signal: stop.signal })).rejects.toThrow(
      "too late",
    );
    stop.abort();
    await waiting;
    expect(env.sleepers).toBe(0);
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });

  it("does not hear how the work ends afterwards", async () => {
    let fail: (error: Error) => void = () => {};
    const work = new Promise<never>((_, reject) => {
      fail = reject;
    });
    expect(await withTimeout(work, 0, () => "late")).toBe("late");
    fail(new Error("an unhandled rejection would fail this run"));
    await new Promise((resolve) => setImmediate(resolve));
  });

  it("holds no process up once the work is done", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const waiting = withTimeout(Promise.resolve(), 3_600_000, tooLate);
    expect(timers()).toBe(before + 1);
    await waiting;
    expect(timers()).toBe(before);
  });
});
