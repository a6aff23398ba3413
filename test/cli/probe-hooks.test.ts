/** The probe of connected hooks. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hookedPlace } from "../support/hooked.ts";
import { verifies } from "../support/verifies.ts";

it("starts each connected hook as its client's settings do, and judges it", async () => {
  verifies("beyond.hooks.probe");
  const place = await hookedPlace("claude-code");
  const verdicts = async () => {
    const { out } = await place.svc("probe", "--json");
    const lines = JSON.parse(out).lines as { surface: string; guarantee: string; verdict: string }[];
    return Object.fromEntries(
      lines
        .filter(({ surface }) => surface === "hook of claude-code")
        .map(({ guarantee, verdict }) => [guarantee, verdict]),
    );
  };
  const guarantees = {
    runs: "an allowed call runs",
    denied: "a denied call does not run",
    waits: "a call that waits for approval does not run",
    undone: "an undone call is undone",
    unknown: "a call of an unknown tool does not run",
    unreadable: "an event that cannot be read is refused",
  };
  const all = Object.fromEntries(Object.values(guarantees).map((one) => [one, "holds"]));
  expect(await verdicts()).toEqual(all);
  // Approvers see no request of the probe.
  expect((await place.approvals()).filter(({ status }) => status === "pending")).toEqual([]);
  const file = join(place.home, ".claude/settings.json");
  const text = readFileSync(file, "utf8");
  // A hook that says yes, one that answers with another code, and one that is gone.
  for (const start of ["true", "echo no >&2; exit 1", "/nowhere/node"]) {
    const settings = JSON.parse(text);
    settings.hooks.PreToolUse[0].hooks[0].command = `${start} # svc hook claude-code --settings x`;
    writeFileSync(file, JSON.stringify(settings));
    const found = await verdicts();
    for (const one of [guarantees.denied, guarantees.waits, guarantees.unknown, guarantees.unreadable])
      expect([start, one, found[one]]).toEqual([start, one, "BROKEN"]);
  }
  writeFileSync(file, "{}");
  expect(await verdicts()).toEqual({ "the client starts the hook": "BROKEN" });
  writeFileSync(file, text);
  await place.server.stop();
  expect(await verdicts()).toMatchObject({
    [guarantees.runs]: "not checked",
    [guarantees.denied]: "not checked",
    [guarantees.waits]: "not checked",
    [guarantees.undone]: "not checked",
    [guarantees.unknown]: "holds",
  });
});
