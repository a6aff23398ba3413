import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ReadRequest } from "../ports.ts";
import { readEach } from "./read-each.ts";

const read = async ({ arguments: args }: ReadRequest): Promise<JsonValue> => {
  if (args === "gone") throw new Error("nothing there");
  return { at: args };
};

it("reads once for each item of a list, and answers a failure as an error", async () => {
  verifies("beyond.before.several");
  const of = (args: JsonValue) => readEach(read, { tool: "t", arguments: args });
  expect(await of(["a", "gone"])).toEqual([{ at: "a" }, { error: "nothing there" }]);
  expect(await of({ path: "a" })).toEqual({ at: { path: "a" } });
  await expect(of(["gone", "gone"])).rejects.toThrow("nothing there");
});

it("is not an answer where the read was broken off", async () => {
  verifies("beyond.before.several");
  const stop = new AbortController();
  const slow = async (request: ReadRequest): Promise<JsonValue> => {
    if (request.arguments === "b") stop.abort(new Error("stopped"));
    return read(request.arguments === "b" ? { tool: "t", arguments: "gone" } : request);
  };
  const all = readEach(slow, { tool: "t", arguments: ["a", "b"] }, stop.signal);
  await expect(all).rejects.toThrow("stopped");
});
