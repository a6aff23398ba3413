import { describe, expect, it, vi } from "vitest";
import type { Pending } from "./batch.ts";
import { GroupCommit, type Written } from "./group-commit.ts";
import { MayBeFound } from "./may-be-found.ts";

/** A store whose batches are written when `written` lets them, and become durable when the test says so. */
function slowStore(deadline_ms?: number, written: Promise<void> = Promise.resolve()) {
  const batches: { size: number; resolve(): void; reject(error: Error): void }[] = [];
  const commit = async (batch: readonly Pending[], _until: number, leave: () => void): Promise<Written> => {
    await written;
    leave();
    for (const pending of batch) {
      const value = pending.unit.run(undefined as never);
      pending.outcome = { ok: true, value, wrote: !String(value).startsWith("look") };
    }
    const { promise, resolve, reject } = withResolvers();
    batches.push({ size: batch.length, resolve, reject });
    return { durable: promise };
  };
  const commits = new GroupCommit(commit, deadline_ms);
  const answered: string[] = [];
  const submit = (name: string) =>
    commits.submit({ run: () => name }).then(
      (value) => void answered.push(value),
      (error: Error) => void answered.push(`${name}: ${told(error)}`),
    );
  return { batches, commits, submit, answered };
}

const told = (error: Error): string => (error instanceof MayBeFound ? "may be found" : error.message);

function withResolvers() {
  let resolve: (() => void) | undefined;
  let reject: ((error: Error) => void) | undefined;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve: resolve!, reject: reject! };
}

const aWhile = () => new Promise((resolve) => setTimeout(resolve, 20));

describe("group commit", () => {
  it("puts what arrives together into one batch, and answers it when that is durable", async () => {
    const { batches, submit, answered } = slowStore();
    const all = [submit("a"), submit("b"), submit("c")];
    await vi.waitFor(() => expect(batches.map(({ size }) => size)).toEqual([3]));
    await aWhile();
    expect(answered).toEqual([]);
    batches[0]!.resolve();
    await Promise.all(all);
    expect(answered).toEqual(["a", "b", "c"]);
  });

  it("writes one batch while another is synced, and no more", async () => {
    const { batches, submit, answered } = slowStore();
    const a = submit("a");
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    const b = submit("b");
    await vi.waitFor(() => expect(batches).toHaveLength(2));
    const others = [submit("c"), submit("d")];
    await aWhile();
    expect(batches).toHaveLength(2);
    batches[0]!.resolve();
    await a;
    await vi.waitFor(() => expect(batches.map(({ size }) => size)).toEqual([1, 1, 2]));
    expect(answered).toEqual(["a"]);
    batches[1]!.resolve();
    batches[2]!.resolve();
    await Promise.all([b, ...others]);
    expect(answered).toEqual(["a", "b", "c", "d"]);
  });

  it("refuses a batch that is not made durable, and goes on with the next", async () => {
    const { batches, submit, answered } = slowStore();
    const a = submit("a");
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    batches[0]!.reject(new Error("no"));
    await a;
    const b = submit("b");
    await vi.waitFor(() => expect(batches).toHaveLength(2));
    batches[1]!.resolve();
    await b;
    expect(answered).toEqual(["a: may be found", "b"]);
  });

  it("tells those who wrote nothing that nothing of theirs can be found", async () => {
    const { batches, submit, answered } = slowStore();
    const all = [submit("look"), submit("a")];
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    batches[0]!.reject(new Error("no"));
    await Promise.all(all);
    const unfounded = "ledger unavailable: what this request has found could not be made durable in time";
    expect(answered).toEqual([`look: ${unfounded}`, "a: may be found"]);
  });

  it("lets nobody wait for what hangs, says what may come of it, and lets nobody in until it has ended", async () => {
    const { batches, commits, submit, answered } = slowStore(300);
    const begun = [submit("a")];
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    begun.push(submit("b"));
    await vi.waitFor(() => expect(batches).toHaveLength(2));
    const behind = submit("not begun");
    await Promise.all([...begun, behind]);
    await submit("not let in");
    const slow = "ledger unavailable: the store does not answer in time";
    expect(answered.sort()).toEqual([
      "a: may be found",
      "b: may be found",
      `not begun: ${slow}`,
      `not let in: ${slow}`,
    ]);
    batches[1]!.resolve();
    batches[0]!.resolve();
    await aWhile();
    const d = submit("d");
    await vi.waitFor(() => expect(batches).toHaveLength(3));
    batches[2]!.resolve();
    await d;
    expect(answered.at(-1)).toBe("d");
    await commits.close();
  });

  it("lets nothing out any more once it has refused it", async () => {
    const { promise, resolve } = withResolvers();
    const { batches, commits, submit, answered } = slowStore(50, promise);
    await submit("a");
    expect(answered).toEqual(["a: ledger unavailable: the store does not answer in time"]);
    resolve();
    await vi.waitFor(async () => {
      await submit("b");
      expect(answered.at(-1)).not.toContain("b: ledger unavailable");
    });
    expect(batches.map(({ size }) => size)).toEqual([1]);
    await commits.close();
  });

  it("closes when everything that was let in is durable", async () => {
    const { batches, commits, submit, answered } = slowStore();
    const a = submit("a");
    await vi.waitFor(() => expect(batches).toHaveLength(1));
    let closed = false;
    const closing = commits.close().then(() => {
      closed = true;
    });
    await submit("b");
    await aWhile();
    expect(closed).toBe(false);
    batches[0]!.resolve();
    await Promise.all([a, closing]);
    expect(answered).toEqual(["b: the store is closed", "a"]);
  });
});
