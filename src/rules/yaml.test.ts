import { describe, expect, it } from "vitest";
import * as z from "zod";
import { ProblemsError } from "../kernel/errors.ts";
import { parseYaml, readYaml } from "./yaml.ts";

const schema = z.strictObject({
  name: z.string(),
  ports: z.array(z.strictObject({ port: z.int(), host: z.string().default("localhost") })).optional(),
  labels: z.record(z.string(), z.strictObject({ colour: z.enum(["red", "green"]) })).optional(),
  either: z.union([z.string(), z.array(z.string())]).optional(),
});

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
  return [];
}

describe("readYaml", () => {
  it("answers what the schema makes of the document", () => {
    expect(readYaml("name: a\nports: [{port: 80}]", "f.yaml", schema)).toEqual({
      name: "a",
      ports: [{ port: 80, host: "localhost" }],
    });
  });

  it("names file, line, column and field of every problem, in the order of the file", () => {
    const text = "ports:\n  - {port: x}\n  - {prot: 1}\nlabels:\n  a b: {colour: grean}\neither: {}\n";
    expect(problemsOf(() => readYaml(text, "f.yaml", schema))).toEqual([
      "f.yaml:1:1: name: is missing; write text",
      'f.yaml:2:12: ports[0].port: must be a number, not the text "x"',
      "f.yaml:3:5: ports[1].port: is missing; write a number",
      'f.yaml:3:6: ports[1].prot: unknown key; did you mean "port"?',
      'f.yaml:5:17: labels["a b"].colour: must be one of red, green, not "grean"; did you mean "green"?',
      "f.yaml:6:9: either: {} matches none of the allowed forms; write text or a list",
    ]);
  });

  it("lets a lint report next to the schema, by path", () => {
    const lint = (_: unknown, report: (path: (string | number)[], message: string) => void) => {
      report(["ports", 1, "port"], "is taken");
      report(["ports", 7], "is not there");
    };
    const text = "name: 5\nports:\n  - port: 1\n  - port: 1\n";
    expect(problemsOf(() => readYaml(text, "f.yaml", schema, lint))).toEqual([
      "f.yaml:1:7: name: must be text, not 5",
      "f.yaml:3:3: ports[7]: is not there",
      "f.yaml:4:11: ports[1].port: is taken",
    ]);
  });

  it("shortens long values in messages", () => {
    const [problem] = problemsOf(() =>
      readYaml(`labels: {a: {colour: ${"x".repeat(500)}}}\nname: a`, "f.yaml", schema),
    );
    expect(problem!.length).toBeLessThan(200);
  });

  it("finds places through an alias", () => {
    const text = "name: a\nports:\n  - &p {port: x}\n  - *p\n";
    expect(problemsOf(() => readYaml(text, "f.yaml", schema))).toContain(
      'f.yaml:3:15: ports[1].port: must be a number, not the text "x"',
    );
  });
});

describe("parseYaml", () => {
  it("reads what YAML 1.2 and JSON share", () => {
    const { value } = parseYaml(
      'a: [1, 2.5, -0, true, null, ~, "x", off, 2026-01-01, 0x1F]\nb: |\n  text\n',
      "f.yaml",
    );
    expect(value).toEqual({ a: [1, 2.5, 0, true, null, null, "x", "off", "2026-01-01", 31], b: "text\n" });
  });

  it("places a problem at the nearest node that exists", () => {
    const source = parseYaml("a:\n  b: 1\n", "f.yaml");
    expect(source.place({ path: ["a", "b"], message: "m" })).toBe("f.yaml:2:6: a.b: m");
    expect(source.place({ path: ["a", "c", "d"], message: "m" })).toBe("f.yaml:2:3: a.c.d: m");
    expect(source.place({ path: [], message: "m" })).toBe("f.yaml:1:1: (document): m");
  });
});
