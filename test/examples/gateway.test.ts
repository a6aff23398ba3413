import { describe, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { runExample, shownInReadme, steady } from "./support/example.ts";

describe("examples/gateway", () => {
  it("does what its README shows, and undoes every change of the files", async () => {
    const { code, out, err, left } = await runExample("gateway");
    expect({ code, err, left }).toEqual({ code: 0, err: "", left: [] });
    expect(steady(out)).toBe(steady(shownInReadme("gateway")));
    const shown = (when: string) => new RegExp(`^${when}: (.*)$`, "m").exec(out)![1];
    expect(shown("after")).not.toBe(shown("before"));
    expect(shown("after undo")).toBe(shown("before"));
  });

  it("has a policy whose tests pass", async () => {
    expect((await svc(["policy", "test", "examples/gateway/policy.yaml"])).out).toContain("3 passed");
  });
});
