/** Compensators that misbehave as real processes do: the step ends as failed after its attempts, with one key. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { compensatorCommand, verifyCommand } from "../../src/child-process/rollback-commands.ts";
import { tempDir, tempFile } from "../support/tmp.ts";
import { countTrials } from "../support/trials.ts";
import { until } from "../support/until.ts";
import { rollbackBench } from "./rollback-fixture.ts";

/** Notes the key it was given, then does as it likes. */
function misbehaving(body: string) {
  const log = join(tempDir(), "keys");
  const script = tempFile(
    "undo.mjs",
    `import { appendFileSync, readFileSync } from "node:fs";
import { spawn } from "node:child_process";
appendFileSync(${JSON.stringify(log)}, JSON.parse(readFileSync(0, "utf8")).idempotency_key + "\\n");
${body}`,
  );
  return {
    command: `'${process.execPath}' ${script}`,
    keys: () => (existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : []),
  };
}

const HANG = "setInterval(() => {}, 1000);";

describe("a compensator command that", () => {
  it.each([
    ["hangs", HANG, /did not end within/],
    ["hangs and ignores SIGTERM", `process.on("SIGTERM", () => {}); ${HANG}`, /did not end within/],
    [
      "hangs with a grandchild on its pipe",
      `spawn("sleep", ["600"], { stdio: "inherit" }); ${HANG}`,
      /did not end within/,
    ],
    [
      "floods",
      "for (;;) process.stdout.write('x'.repeat(65536)) || (await new Promise((r) => process.stdout.once('drain', r)));",
      /printed more than/,
    ],
    [
      "fails with a grandchild on its pipe",
      `spawn("sleep", ["600"], { stdio: "inherit" }); process.exit(3);`,
      /exited with code 3/,
    ],
    ["is killed", "process.kill(process.pid, 'SIGKILL');", /was ended by SIGKILL/],
  ])("%s fails the step after its attempts", async (_, body, why) => {
    const b = rollbackBench();
    await b.openRun();
    await b.act("db.create");
    const { command, keys } = misbehaving(body);
    const hangs = body.includes(HANG);
    if (hangs) vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const compensator = compensatorCommand(command, { timeout_ms: 500_000 });
    const rollback = b.rollback({ compensator, retries: 2 });
    for (const attempt of hangs ? [1, 2] : []) {
      await until(() => keys().length === attempt, `attempt ${attempt}`);
      // The deadline, and then the time that a command has to end on its own.
      vi.advanceTimersByTime(500_000);
      vi.advanceTimersByTime(2_000);
    }
    const report = await rollback;
    expect(report).toMatchObject({
      compensated: [],
      failed: [{ step: 0, error: expect.stringMatching(/^after 2 attempts: /) }],
    });
    expect(report.failed[0]?.error).toMatch(why);
    expect((await b.step(0)).status).toBe("compensation_failed");
    expect(keys()).toEqual([(await b.step(0)).handle, (await b.step(0)).handle]);
    countTrials("any", "compensator hangs, floods, dies or leaves children", 1);
  });

  it("says something when all is well is believed", async () => {
    const b = rollbackBench();
    await b.openRun();
    await b.act("db.create");
    const { command } = misbehaving("console.log('done, boss');");
    expect(await b.rollback({ compensator: compensatorCommand(command) })).toMatchObject({
      compensated: [0],
      complete: true,
    });
  });

  it("is not believed by the verify command", async () => {
    const b = rollbackBench();
    await b.openRun();
    await b.act("db.create");
    const good = misbehaving("");
    const report = await b.rollback({
      compensator: compensatorCommand(good.command),
      verify: verifyCommand("false"),
    });
    expect(report.failed[0]?.error).toContain(
      "the verify check did not confirm the undo: the verify command exited with code 1",
    );
  });
});
