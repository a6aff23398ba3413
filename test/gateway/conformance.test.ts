/**
 * The official MCP conformance suite against the gateway, in enforce mode, with the suite's fixtures behind
 * it: every scenario that a revision requires. The suite sends no credential, so a front adds one.
 */
import { describe, expect, it, vi } from "vitest";
import { front, governedFixtures, serverConformance } from "./support/conformance.ts";

vi.setConfig({ testTimeout: 300_000 });

describe("the MCP conformance suite", () => {
  it.each([
    ["2025-11-25", "legacy", 30, 69],
    ["2026-07-28", "modern", 37, 120],
  ] as const)("revision %s", async (revision, era, scenarios, checks) => {
    const g = await governedFixtures(era);
    const outcome = await serverConformance(await front(g.url), revision);
    const failing = [...outcome.scenarios]
      .filter(([name, { failed }]) => failed > 0 && !outcome.not_scored.has(name))
      .map(([name]) => name);
    if (failing.length > 0) console.error(outcome.output);
    expect(failing).toEqual([]);
    expect(outcome.failed).toBe(0);
    expect(outcome.scenarios.size - outcome.not_scored.size).toBeGreaterThanOrEqual(scenarios);
    expect(outcome.passed).toBeGreaterThanOrEqual(checks);
    console.log(
      `conformance ${revision}: ${outcome.passed} checks of ${outcome.scenarios.size - outcome.not_scored.size} scenarios passed`,
    );
    // The suite's calls were governed: each has its records.
    expect((await g.events()).filter((event) => event === "intended").length).toBeGreaterThan(10);
  });
});
