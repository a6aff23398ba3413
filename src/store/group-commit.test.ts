import { describe, expect, it, vi } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import type { PendingUnit } from "./batch.ts";
import { GroupCommit, MAX_BATCH, type WrittenBatch } from "./group-commit.ts";
import { IndeterminateCommitError } from "./indeterminate-commit.ts";

/** A store whose batches are written when `written` lets them, and become durable when the test decides. */
function slowStore(deadline_ms?: number, written: Promise<void> = Promise.resolve()) {
  const batches: { size: number; resolve(): void; reject(error: Error): void }[] = [];
  const commit = async (
    batch: readonly PendingUnit[],
    _until: number,
    leave: () => void,
  ): Promise<WrittenBatch> => {
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
  const commits = new GroupCommit(commit, { deadline_ms });
  const answered: string[] = [];
  const submit = (name: string) =>
    commits.submit({ run: () => name }).then(
      (value) => void answered.push(value),
      (error: Error) => void answered.push(`${name}: ${told(error)}`),
    );
  return { batches, commits, submit, answered };
}

const told = (error: Error): string =>
  error instanceof IndeterminateCommitError ? "may be found" : error.message;

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

  it.each([
    { gathers: true, expected: [1, 2] },
    { gathers: false, expected: [1, 1, 1] },
  ])(
    "takes in what the turn of the event loop reads, if it gathers: $gathers",
    async ({ gathers, expected }) => {
      const sizes: number[] = [];
      const more: Promise<unknown>[] = [];
      const submit = () => more.push(commits.submit({ run: () => null }));
      const commits: GroupCommit = new GroupCommit(
        async (batch) => {
          sizes.push(batch.length);
          for (const pending of batch) pending.outcome = { ok: true, value: null, wrote: true };
          if (sizes.length === 1) {
            submit();
            setImmediate(submit);
          }
          return undefined;
        },
        { gathers },
      );
      submit();
      await vi.waitFor(() => expect(more).toHaveLength(3));
      await Promise.all(more);
      expect(sizes).toEqual(expected);
    },
  );

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

  it("refuses a batch that is not made durable, and continues with the next", async () => {
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
    const unfounded = "ledger unavailable: the data that this request read could not be made durable in time";
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

describe("the shares of a batch", () => {
  const flood = (tenants: Record<string, number>, deadline_ms?: number) => {
    const batches: string[][] = [];
    let let_go = (): void => {};
    const held = new Promise<void>((resolve) => {
      let_go = resolve;
    });
    const commits = new GroupCommit(
      async (batch) => {
        if (batches.length === 0) await held;
        batches.push(batch.map(({ unit }) => unit.share ?? ""));
        for (const pending of batch)
          pending.outcome = { ok: true, value: pending.unit.run(null!), wrote: true };
        return undefined;
      },
      { deadline_ms },
    );
    const answers: Promise<{ share: string; n: number } | Error>[] = [];
    const submit = (share: string, n: number) =>
      answers.push(commits.submit({ share, run: () => ({ share, n }) }).catch((error: Error) => error));
    submit("first", 0);
    return {
      batches,
      answers,
      submit,
      letGo: () => let_go(),
      floodWith: () => {
        for (const [share, count] of Object.entries(tenants))
          for (let n = 0; n < count; n++) submit(share, n);
      },
    };
  };

  const count = (batch: readonly string[], share: string) => batch.filter((one) => one === share).length;

  it("a tenant that floods takes no more than its share, and its neighbours are all in the next batch", async () => {
    verifies("beyond.quotas.share");
    const { batches, answers, floodWith, letGo } = flood({
      flood: 4 * MAX_BATCH,
      quiet: 3,
      other: MAX_BATCH,
    });
    floodWith();
    letGo();
    await Promise.all(answers);
    const part = (MAX_BATCH - 3 - 1) / 2;
    expect(count(batches[0]!, "quiet")).toBe(3);
    expect(Math.abs(count(batches[0]!, "flood") - part)).toBeLessThanOrEqual(1);
    expect(Math.abs(count(batches[0]!, "other") - part)).toBeLessThanOrEqual(1);
    expect(batches.slice(0, -1).every((batch) => batch.length === MAX_BATCH)).toBe(true);
    expect(batches.flat()).toHaveLength(5 * MAX_BATCH + 4);
  });

  it("more tenants than a batch has room for all get their turn", async () => {
    const tenants = Object.fromEntries(Array.from({ length: 2 * MAX_BATCH }, (_, i) => [`t${i}`, 2]));
    const { batches, answers, floodWith, letGo } = flood(tenants);
    floodWith();
    letGo();
    await Promise.all(answers);
    const seen = new Set(batches.slice(0, 3).flat());
    expect(seen.size).toBe(2 * MAX_BATCH + 1);
  });

  it("a caller that waited too long behind its own burst is refused alone", async () => {
    const { answers, submit, floodWith, letGo } = flood({ flood: 2 * MAX_BATCH }, 60_000);
    floodWith();
    const now = vi.spyOn(performance, "now");
    const later = performance.now() + 31_000;
    now.mockReturnValue(later);
    submit("quiet", 0);
    letGo();
    const all = await Promise.all(answers);
    now.mockRestore();
    expect(all.at(-1)).toEqual({ share: "quiet", n: 0 });
    expect(all.filter((one) => one instanceof Error).length).toBeGreaterThan(0);
  });
});
