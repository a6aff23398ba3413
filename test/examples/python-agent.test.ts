import { describe, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { runExample, shownInReadme, steady } from "./support/example.ts";

const PYTHON = await program("python3");

describe("examples/python-agent", () => {
  it("does what its README shows, and leaves the stock as it was", async () => {
    const { code, out, err, left } = await runExample("python-agent", { PYTHON });
    expect({ code, err, left }).toEqual({ code: 0, err: "", left: [] });
    expect(steady(out)).toBe(steady(shownInReadme("python-agent")));
    const stock = out.match(/\{'item': 'tea'.*\}/g)!;
    expect(stock).toHaveLength(2);
    expect(stock[1]).toBe(stock[0]);
  });

  it("has a policy whose tests pass", async () => {
    expect((await svc(["policy", "test", "examples/python-agent/policy.yaml"])).out).toContain("3 passed");
  });
});
