import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { fillTemplate, parsePath, readPath, templatePaths, tryPath } from "./paths.ts";

const values = { args: { a: { "any name": [1, { b: 2 }] }, list: [0] }, result: { id: "x" } };

describe("paths", () => {
  it.each([
    ["$args", values.args],
    ['$args.a["any name"][1].b', 2],
    ["$args.list[0]", 0],
    ["$result.id", "x"],
    ["$args.missing", undefined],
    ["$args.a.toString", undefined],
    ["$args.constructor", undefined],
    ["$args.list.length", undefined],
    ["$args.list[9]", undefined],
    ["$args.a[0]", undefined],
  ])("%s", (source, wanted) => {
    verifies("contract.path.segments", "contract.path.own-properties");
    expect(readPath(parsePath(source), values)).toEqual(wanted);
  });

  it.each([
    "",
    "args.a",
    "$other.a",
    "$args.",
    "$args..a",
    "$args[",
    "$args[x]",
    '$args["x]',
    "$argsx",
    "$args a",
  ])("refuses %j", (source) => {
    verifies("contract.path.roots");
    expect(tryPath(source)).toBeUndefined();
    expect(() => parsePath(source)).toThrow("is not a path");
  });

  it("fills a template, and none of it when a value is missing", () => {
    const template = { id: "$result.id", note: "plain", deep: ["$args.list[0]"] };
    expect(fillTemplate(template, values)).toEqual({ id: "x", note: "plain", deep: [0] });
    expect(fillTemplate({ ...template, gone: "$result.gone" }, values)).toBeUndefined();
    expect(templatePaths(template)).toEqual(["$result.id", "$args.list[0]"]);
  });
});
