/** A small fault run, as anybody would start it: real processes, every store, and nothing but zeros. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { ROOT } from "../support/files.ts";

const run = promisify(execFile);

async function fault(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const script = join(ROOT, "proof", "run.mjs");
  try {
    const { stdout, stderr } = await run(process.execPath, [script, "fault", ...args], { cwd: ROOT });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

const SIZES = { kills: 6, approvals: 50, halts: 3, clocks: 4, outages: 4 };

describe("npm run fault", () => {
  it("kills, contests, halts, turns clocks and takes databases away, and finds nothing wrong", {
    timeout: 300_000,
  }, async () => {
    const sizes = Object.entries(SIZES).flatMap(([name, count]) => [`--${name}`, String(count)]);
    const { code, out, err } = await fault("--only", "processes", "--json", ...sizes);
    const rows = JSON.parse(out) as Record<string, unknown>[];
    const zeros = { lost: 0, forks: 0, broken_chains: 0, bare_allows: 0, half_units: 0, problems: [] };
    for (const row of rows) expect(row, err).toMatchObject(zeros);
    for (const row of rows) expect(row["trials"], JSON.stringify(row)).toBeGreaterThan(0);
    for (const row of rows) expect(row["answers"], JSON.stringify(row)).toBeGreaterThan(0);
    expect(rows.map(({ store }) => store)).toEqual([
      ...Array<string>(4).fill("files"),
      ...Array<string>(4).fill("sqlite"),
      ...Array<string>(5).fill("postgres"),
    ]);
    expect(code).toBe(0);
  });

  it("says what is wrong with its options", async () => {
    expect(await fault("--kills", "many")).toMatchObject({ code: 1, err: "--kills: a whole number\n" });
    expect((await fault("--store", "paper")).err).toContain("--store: one of files, sqlite, postgres");
  });
});
