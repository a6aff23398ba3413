/** The probe of connected hooks. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { probeHooks } from "../../src/cli/commands/agents/probe-hooks.ts";
import type { CommandIo } from "../../src/cli/io.ts";
import { hookedPlace } from "../support/hooked.ts";
import { verifies } from "../support/verifies.ts";

it("starts each connected hook as its client's settings do, and judges it", async () => {
  verifies("beyond.hooks.probe");
  const place = await hookedPlace("claude-code", "--hold", "0");
  const io = { env: { HOME: place.home } } as unknown as CommandIo;
  const verdicts = async () => (await probeHooks(io)).map(({ surface, verdict }) => `${surface}: ${verdict}`);
  expect(await verdicts()).toEqual(["hook of claude-code: holds", "hook of claude-code: holds"]);
  const file = join(place.home, ".claude/settings.json");
  const text = readFileSync(file, "utf8");
  // A hook that says yes, one that answers with another code, and one that is gone.
  const replaced = (start: string) => {
    const settings = JSON.parse(text);
    settings.hooks.PreToolUse[0].hooks[0].command = `${start} # svc hook claude-code --settings x`;
    writeFileSync(file, JSON.stringify(settings));
  };
  for (const start of ["true", "echo no >&2; exit 1", "/nowhere/node"]) {
    replaced(start);
    expect([start, await verdicts()]).toEqual([
      start,
      ["hook of claude-code: BROKEN", "hook of claude-code: BROKEN"],
    ]);
  }
  writeFileSync(file, "{}");
  expect(await verdicts()).toEqual(["hook of claude-code: BROKEN"]);
  writeFileSync(file, text);
  await place.server.stop();
  expect(await verdicts()).toEqual(["hook of claude-code: not checked", "hook of claude-code: holds"]);
});
