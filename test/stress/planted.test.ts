/** The list of planted bugs fits the sources as they are; `npm run plant` plants them. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BUGS } from "../../stress/planted/all.ts";
import type { Bug } from "../../stress/planted/bug.ts";
import { occurrences, planted } from "../../stress/planted/tree.ts";
import { ROOT } from "../support/files.ts";

describe("planted bugs", () => {
  it("are many, and each has its own name", () => {
    expect(BUGS.length).toBeGreaterThanOrEqual(30);
    expect(new Set(BUGS.map(({ name }) => name)).size).toBe(BUGS.length);
  });

  it.each(BUGS.map((bug) => [bug.name, bug] as const))("%s: fits", (_name, bug) => {
    const source = readFileSync(join(ROOT, bug.file), "utf8");
    expect(occurrences(bug, source), `adapt its text to ${bug.file}`).toBe(1);
    expect(planted(bug, source)).not.toBe(source);
    for (const file of bug.tests) expect(existsSync(join(ROOT, file)), file).toBe(true);
  });

  it("are refused where their text is gone or is there twice", () => {
    const bug = BUGS[0]!;
    expect(() => planted(bug, "")).toThrow(`${bug.name}: its text is 0 times`);
    expect(() => planted(bug, bug.find + bug.find)).toThrow("2 times");
  });

  it("follow renamed identifiers and other line breaks", () => {
    const bug: Bug = {
      name: "the last use is used twice",
      file: "src/uses.ts",
      find: "if (grant.uses >= grant.max_uses) return null;",
      replace: "if (grant.uses > grant.max_uses) return null;",
      tests: [],
    };
    const renamed =
      "function use(permit: Permit) {\n  if (\n    permit.count >= permit.limit\n  ) return null;\n}\n";
    expect(planted(bug, renamed)).toBe(
      "function use(permit: Permit) {\n  if (permit.count > permit.limit) return null;\n}\n",
    );
  });

  it("do not follow into a place that is only similar", () => {
    const bug = { ...BUGS[0]!, find: 'return held === "open";', replace: "return true;" };
    expect(occurrences(bug, 'return state === "closed";')).toBe(0);
    expect(occurrences({ ...bug, find: "a.x === a.y" }, "one.x === other.y")).toBe(0);
    expect(occurrences({ ...bug, find: "a >= b" }, "uses >= limit; count >= most")).toBe(2);
  });
});
