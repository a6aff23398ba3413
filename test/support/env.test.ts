import { describe, expect, it } from "vitest";
import { fakeEnv } from "./env.ts";

describe("fakeEnv", () => {
  it("is frozen until it is moved", async () => {
    const env = fakeEnv({ now: 1_000 });
    expect([env.now(), env.elapsed()]).toEqual([1_000, 0]);
    await env.advance(250);
    expect([env.now(), env.elapsed()]).toEqual([1_250, 250]);
  });

  it("gives the same ids and numbers for the same seed, and others for another", () => {
    const draw = (seed: number) => {
      const env = fakeEnv({ seed });
      return [env.uuid(), env.uuidv7(), env.random(), Buffer.from(env.bytes(8)).toString("hex")];
    };
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    expect(draw(1)[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("wakes sleepers in the order of their time, also those that fall asleep again", async () => {
    const env = fakeEnv();
    const woken: string[] = [];
    const nap = async (name: string, ...times: number[]) => {
      for (const ms of times) {
        await env.sleep(ms);
        woken.push(`${name}@${env.elapsed()}`);
      }
    };
    const all = Promise.all([nap("late", 30), nap("twice", 10, 10), nap("never", 100)]);
    await env.advance(40);
    expect(woken).toEqual(["twice@10", "twice@20", "late@30"]);
    expect(env.sleepers).toBe(1);
    await env.advance(60);
    await all;
    expect(env.slept).toEqual([30, 10, 100, 10]);
  });

  it("lets a sleeper go when its signal aborts", async () => {
    const env = fakeEnv();
    const abort = new AbortController();
    const sleep = env.sleep(1_000, abort.signal);
    abort.abort(new Error("enough"));
    await expect(sleep).rejects.toThrow("enough");
    expect(env.sleepers).toBe(0);
  });

  it("can move time on automatically", async () => {
    const env = fakeEnv({ autoSleep: true });
    await env.sleep(500);
    expect(env.elapsed()).toBe(500);
  });

  it("can be set to another time without the monotonic clock noticing", () => {
    const env = fakeEnv({ now: 5_000 });
    env.setNow(1_000);
    expect([env.now(), env.elapsed()]).toEqual([1_000, 0]);
  });
});
