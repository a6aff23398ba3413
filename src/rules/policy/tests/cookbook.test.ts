/** Every policy of the cookbook loads, passes its own tests, and is what it claims. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { verifies } from "../../../../test/support/verifies.ts";
import { DEFAULT_WEIGHTS } from "../checks/default-weights.ts";
import { compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import { OP_NAMES } from "../ops/table.ts";
import { checkClaims } from "../prove/claims.ts";
import type { PolicyDoc } from "../schema.ts";
import { runPolicyTests } from "./tests.ts";

const folder = new URL("../../../../examples/policies/", import.meta.url);
const docs = new URL("../../../../docs/", import.meta.url);
const pages = readdirSync(docs, { recursive: true, encoding: "utf8" }).filter(
  (page) => page.endsWith(".md") && readFileSync(new URL(page, docs), "utf8").includes("```yaml policy"),
);
const guide = ["reference/policy-rules", "guides/policy", "guides/policy-cookbook"]
  .map((page) => readFileSync(new URL(`${page}.md`, docs), "utf8"))
  .join("\n");
const files = readdirSync(folder).filter((name) => name.endsWith(".yaml"));

/** In the tests of their policies a stricter entry always decides before these do. */
const OVERRULED = new Set(["daily", "tenant-day", "hotfix-any-time"]);

/** By the number of calls alone: how busy the machine is must not matter. */
const proving = () => ({
  labels: new Map(),
  now_ms: Date.UTC(2026, 5, 1),
  budget: { cells: 400_000, late: () => false },
});

/** A year-end night, which shows hidden dependencies on the clock. */
const setting = { manifestFor: () => null, now_ms: Date.UTC(2026, 11, 26, 2) };

describe("the cookbook", () => {
  it("has at least twelve policies, and the guides name each", () => {
    expect(files.length).toBeGreaterThanOrEqual(12);
    for (const file of files) expect(guide).toContain(`examples/policies/${file}`);
  });

  it("is explained in pages that leave out no operator and no weight", () => {
    for (const op of OP_NAMES) expect(guide).toContain(`\`${op}\``);
    expect(guide).toContain("[every weight](policy.md)");
    const reference = readFileSync(new URL("reference/policy.md", docs), "utf8").split("\n");
    const rowOf = (path: string) =>
      reference.find((line) => line.startsWith(`| \`risk.weights.${path}\` |`)) ?? "";
    for (const [factor, weights] of Object.entries(DEFAULT_WEIGHTS))
      for (const [label, points] of Object.entries(weights)) {
        const rows = `${rowOf(factor)}\n${rowOf(`${factor}.${label}`)}`;
        expect(
          rows.includes(`"${label}":${points}`) || rows.includes(`| \`${points}\` |`),
          `${factor}.${label}`,
        ).toBe(true);
      }
  });

  it.each(pages)("%s shows policies that pass their own tests", (page) => {
    const text = readFileSync(new URL(page, docs), "utf8");
    for (const [, shown] of text.matchAll(/```yaml policy\n(.*?)```/gs)) {
      const results = runPolicyTests(compilePolicy(loadPolicy(shown!, page)), setting);
      expect(results.filter(({ ok }) => !ok)).toEqual([]);
    }
  });

  it.each(files)("%s passes its own tests", (file) => {
    const policy = compilePolicy(loadPolicy(readFileSync(new URL(file, folder), "utf8"), file));
    const results = runPolicyTests(policy, setting);
    expect(results.length).toBeGreaterThanOrEqual(2);
    expect(results.filter((result) => !result.ok)).toEqual([]);
  });

  it.each(files)("%s is what it claims, by its own entries", (file) => {
    verifies("beyond.claim.cookbook");
    const doc = loadPolicy(readFileSync(new URL(file, folder), "utf8"), file);
    const results = (policy: PolicyDoc) =>
      checkClaims(compilePolicy(policy), proving()).map(({ result }) => result);
    const { claims = [] } = doc;
    expect(results(doc)).toEqual(claims.map(() => "proved"));
    // A claim that holds without the policy would say nothing about it.
    expect(results({ version: 1, claims })).toEqual(claims.map(() => "counterexample"));
  });

  it("has claims in twelve policies at least", () => {
    verifies("beyond.claim.cookbook");
    const claiming = files.filter(
      (file) => loadPolicy(readFileSync(new URL(file, folder), "utf8"), file).claims !== undefined,
    );
    expect(claiming.length).toBeGreaterThanOrEqual(12);
  });

  it.each(files)("%s has a test for every rule, flow, limit, budget, window and freeze", (file) => {
    const doc = loadPolicy(readFileSync(new URL(file, folder), "utf8"), file);
    const sections = [doc.rules, doc.flows, doc.limits, doc.budgets, doc.windows, doc.freezes];
    const ids = sections.flatMap((section) => (section ?? []).map((entry) => entry.id));
    const tested = new Set((doc.tests ?? []).map((test) => test.rule));
    expect(ids.filter((id) => !tested.has(id) && !OVERRULED.has(id))).toEqual([]);
  });
});
