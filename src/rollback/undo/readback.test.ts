import { describe, expect, it } from "vitest";
import { fakeEnv } from "../../../test/support/env.ts";
import { verifies } from "../../../test/support/verifies.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { firstMismatch } from "../../kernel/partial-match.ts";
import type { ReadBackSpec } from "../plan/classify.ts";
import { readBack } from "./readback.ts";

describe("firstMismatch", () => {
  it.each<[JsonValue, JsonValue]>([
    [{ deleted: true }, { deleted: true, at: 5 }],
    [{}, { anything: 1 }],
    [{ a: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 2 }], more: 1 }, more: 2 }],
    [{ gone: null }, { gone: null }],
    [
      [1, 2],
      [1, 2],
    ],
    ["x", "x"],
    [0, 0],
  ])(
    `%j is shown by %j ${verifies("core.rollback.readback-expect", "contract.manifest.expect-partial", "contract.manifest.expect-list-whole")}`,
    (expected, observed) => {
      expect(firstMismatch(expected, observed)).toBeNull();
    },
  );

  it.each<[JsonValue, JsonValue, string]>([
    [{ deleted: true }, { deleted: false }, "deleted differs"],
    [{ deleted: true }, { deleted: "true" }, "deleted is a string, not a boolean"],
    [{ deleted: true }, {}, "deleted is missing"],
    [{ deleted: true }, null, "the answer is null, not an object"],
    [{ deleted: true }, [{ deleted: true }], "the answer is a list, not an object"],
    [{ a: { "b c": { d: 1 } } }, { a: { "b c": { d: 2 } } }, 'a["b c"].d differs'],
    [{ list: [1] }, { list: [1, 2] }, "list differs"],
    [{ list: [{ a: 1 }] }, { list: [{ a: 1, b: 2 }] }, "list differs"],
    [{ list: [] }, { list: {} }, "list is an object, not a list"],
    [{ toString: 1 }, {}, "toString is missing"],
    [{ gone: null }, {}, "gone is missing"],
  ])("%j against %j: tells the place and no value", (expected, observed, place) => {
    expect(firstMismatch(expected, observed)).toBe(place);
  });
});

describe("readBack", () => {
  const spec: ReadBackSpec = {
    tool: "crm.get",
    arguments: { id: 1 },
    expect: { deleted: true },
    retries: 3,
    backoff_ms: 200,
  };
  const { signal } = new AbortController();

  it(`waits longer each time and stops at the first match ${verifies("core.rollback.readback-backoff-doubles", "contract.readings.verification-retries")}`, async () => {
    const env = fakeEnv({ autoSleep: true });
    const answers: (JsonValue | Error)[] = [
      { deleted: false },
      new Error("away"),
      { deleted: true },
      { deleted: false },
    ];
    const asked: unknown[] = [];
    const reader = async (request: unknown): Promise<JsonValue> => {
      asked.push(request);
      const answer = answers.shift()!;
      if (answer instanceof Error) throw answer;
      return answer;
    };
    expect(await readBack(env, reader, spec, signal)).toMatchObject({ as: "verified" });
    expect(asked).toEqual(Array.from({ length: 3 }, () => ({ tool: "crm.get", arguments: { id: 1 } })));
    expect(env.slept).toEqual([200, 400]);
  });

  it("gives up after the first read and its retries, with the last read's first mismatch", async () => {
    const env = fakeEnv({ autoSleep: true });
    let reads = 0;
    const result = await readBack(env, async () => ({ deleted: false, reads: ++reads }), spec, signal);
    expect(result).toMatchObject({
      as: "verification_failed",
      mismatch: "first mismatch: deleted differs",
      error: "verification failed: crm.get did not show the expected state after the undo",
    });
    expect(reads).toBe(4);
    expect(env.slept).toEqual([200, 400, 800]);
  });

  it("takes anything but JSON as a failed read", async () => {
    const env = fakeEnv({ autoSleep: true });
    const result = await readBack(
      env,
      async () => (() => {}) as unknown as JsonValue,
      { ...spec, retries: 0 },
      signal,
    );
    expect(result).toMatchObject({ as: "verification_failed", mismatch: "first mismatch: the read failed" });
  });

  it("cannot read back without arguments", async () => {
    const reader = (): Promise<JsonValue> => Promise.reject(new Error("not to be called"));
    expect(await readBack(fakeEnv(), reader, { ...spec, arguments: undefined }, signal)).toMatchObject({
      error: "cannot verify: arguments unavailable",
    });
  });
});
