/** Names for model providers: allowed characters, at most 64, one tool each, in any order. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { assignNames, toProviderName } from "./tool-names.ts";

const alone = (tool: string, namespace: string | null = null) => ({ tool, namespace });
const digits = (tool: string) => sha256Hex(tool).slice(0, 8);

describe("one name", () => {
  it.each([
    ["files.write_file", "files", "files__write_file"],
    ["files.a.b", "files", "files__a_b"],
    ["write_file", null, "write_file"],
    ["a.b c/ü", null, "a_b_c__"],
    ["svc.plan_rollback", null, "svc_plan_rollback"],
  ])(`%s is %s ${verifies("beyond.names.spelling")}`, (tool, namespace, name) => {
    expect(toProviderName(tool, namespace)).toBe(name);
  });
});

describe("many names", () => {
  it(`cuts long names, with digits of the dotted name ${verifies("beyond.names.long")}`, () => {
    const long = `files.${"x".repeat(80)}`;
    const name = assignNames([alone(long, "files")]).plain.get(long)!;
    expect(name).toBe(`files__${"x".repeat(48)}_${digits(long)}`);
    expect(name).toHaveLength(64);
  });

  it(`lets a real name win, and marks every made one that clashes ${verifies("beyond.names.clash")}`, () => {
    const tools = [alone("a.b", "a"), alone("a__b"), alone("x.y"), alone("x/y")];
    const expected = [
      ["a.b", `a__b_${digits("a.b")}`],
      ["a__b", "a__b"],
      ["x.y", `x_y_${digits("x.y")}`],
      ["x/y", `x_y_${digits("x/y")}`],
    ];
    for (const order of [tools, [...tools].reverse()])
      expect([...assignNames(order).plain].sort()).toEqual(expected.sort());
  });

  it("never gives out a taken name", () => {
    expect(assignNames([alone("svc:halt")], ["svc_halt"]).plain.get("svc:halt")).toBe(
      `svc_halt_${digits("svc:halt")}`,
    );
  });

  it(`is always allowed, unique and the same in any order ${verifies("beyond.names.unique")}`, () => {
    const name = fc.string({ minLength: 1, maxLength: 70, unit: fc.constantFrom(..."ab._-/ü ") });
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), (tools) => {
        const { plain, dotted } = assignNames(tools.map((tool) => alone(tool)));
        expect(dotted.size).toBe(tools.length);
        for (const [tool, made] of plain) {
          expect(made).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
          if (/^[A-Za-z0-9_-]{1,64}$/.test(tool)) expect(made).toBe(tool);
        }
        expect(assignNames([...tools].reverse().map((tool) => alone(tool))).plain).toEqual(plain);
      }),
    );
  });
});
