import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { runExample, shownInReadme, steady } from "./support/example.ts";

describe("examples/refund-agent", () => {
  it("does what its README shows, line by line", async () => {
    const { code, out, err, folder, left } = await runExample("refund-agent");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(steady(out)).toBe(steady(shownInReadme("refund-agent")));
    // The report stays, and tells of the approval and of both undos.
    expect(left).toEqual(["refund-report.html"]);
    const report = readFileSync(join(folder, "refund-report.html"), "utf8").replace(/<[^>]*>/g, " ");
    expect(report).toContain("refunds over 500 need a person");
    expect(report).toContain("saw the parcel");
    expect(report.match(/payments\.reverse_refund/g)?.length).toBeGreaterThanOrEqual(2);
  });

  it("has a policy whose tests pass, and manifests that load", async () => {
    expect((await svc(["policy", "test", "examples/refund-agent/policy.yaml"])).out).toContain("4 passed");
    expect(await svc(["validate", "examples/refund-agent/manifests.yaml"])).toMatchObject({ code: 0 });
  });
});
