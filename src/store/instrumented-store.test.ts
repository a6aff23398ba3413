import { expect, it } from "vitest";
import { conflictError, SvcError } from "../kernel/errors.ts";
import { instrumentedStore } from "./instrumented-store.ts";
import { MemoryStore } from "./memory/store.ts";

it("tells of commits and of what the medium refused, not of units that were refused", async () => {
  const store = new MemoryStore();
  const told: string[] = [];
  const seen = instrumentedStore(store, {
    committed: (ms) => told.push(ms >= 0 ? "committed" : "negative"),
    failed: (operation) => told.push(`failed ${operation}`),
  });
  expect(await seen.transact({ run: () => 7 })).toBe(7);
  await expect(
    seen.transact({
      run: () => {
        throw conflictError("name_taken", "no");
      },
    }),
  ).rejects.toThrow("no");
  expect(told).toEqual(["committed"]);
  await store.close();
  await expect(seen.get("meta", "x")).rejects.toBeInstanceOf(SvcError);
  await expect(seen.transact({ run: () => 7 })).rejects.toBeInstanceOf(SvcError);
  expect(told).toEqual(["committed", "failed read", "failed append"]);
});
