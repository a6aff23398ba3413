import { describe, expect, it } from "vitest";
import { firstPrimary, hostsOf, NotPrimary } from "./hosts.ts";

describe("hostsOf", () => {
  it.each([
    ["postgres://u:p@a:1/db", ["postgres://u:p@a:1/db"]],
    ["postgres://u:p,q@a/db", ["postgres://u:p,q@a/db"]],
    ["postgres://a,b:2/db?x=1,2", ["postgres://a/db?x=1,2", "postgres://b:2/db?x=1,2"]],
    ["postgresql://u:p@[::1]:1,b/d", ["postgresql://u:p@[::1]:1/d", "postgresql://u:p@b/d"]],
    ["nonsense, with a comma", ["nonsense, with a comma"]],
  ])("%s", (url, hosts) => expect(hostsOf(url)).toEqual(hosts));
});

describe("firstPrimary", () => {
  const never = new AbortController().signal;
  const hosts = ["a", "b", "c"];

  /** What each host answers: itself, or how it fails. */
  function world(url: string, answers: Record<string, "ok" | Error>) {
    const asked: string[] = [];
    const open = async (one: string) => {
      asked.push(one);
      const answer = answers[one]!;
      if (answer === "ok") return one;
      throw answer;
    };
    return { asked, found: () => firstPrimary(url, hosts, never, open) };
  }

  const down = Object.assign(new Error("down"), { code: "ECONNREFUSED" });
  const full = Object.assign(new Error("full"), { code: "53300" });

  it("asks in turn, and next time begins with the one that was right", async () => {
    const { asked, found } = world("postgres://one", { a: down, b: "ok", c: "ok" });
    expect([await found(), await found()]).toEqual(["b", "b"]);
    expect(asked).toEqual(["a", "b", "b"]);
  });

  it("says what a primary said, else that one is out of reach, else that all are standbys", async () => {
    const standby = new NotPrimary();
    await expect(world("2", { a: standby, b: down, c: full }).found()).rejects.toBe(full);
    await expect(world("3", { a: standby, b: down, c: standby }).found()).rejects.toBe(down);
    await expect(world("4", { a: standby, b: standby, c: standby }).found()).rejects.toBe(standby);
  });

  it("leaves one that does not answer for the next", async () => {
    const hanging = (one: string, signal: AbortSignal) =>
      one === "a"
        ? new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(down)))
        : Promise.resolve(one);
    expect(await firstPrimary("5", hosts, never, hanging, 1)).toBe("b");
  });
});
