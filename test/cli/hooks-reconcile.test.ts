/** Transcripts against the ledger: by the hook when a session ends, and by the person. */
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type HookedPlace, hookedPlace } from "../support/hooked.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const line = (value: object) => `${JSON.stringify(value)}\n`;
const at = (n: number) => new Date(1_767_348_000_000 + n).toISOString();
let n = 0;
const used = (id: string) =>
  line({
    type: "assistant",
    timestamp: at(n++),
    message: { content: [{ type: "tool_use", id, name: "Bash", input: { command: "ls /secret-place" } }] },
  });

/** A session that looked once, with its transcript. */
async function session() {
  const place = await hookedPlace("claude-code", "--hold", "0");
  const transcript = join(place.home, "session.jsonl");
  writeFileSync(transcript, line({ type: "user", message: { content: "go on" } }) + used("t0"));
  const event = {
    transcript_path: transcript,
    tool_use_id: "t0",
    tool_name: "Bash",
    tool_input: { command: "ls" },
  };
  expect(await place.ask(event)).toEqual({ code: 0, out: "", err: "" });
  expect((await place.ask({ ...event, hook_event_name: "PostToolUse", tool_response: {} })).code).toBe(0);
  return { place, transcript };
}

const reconcile = (place: HookedPlace, ...args: string[]) =>
  place.svc("reconcile", ...args, "--dir", place.folder);

it("ends with 0 if equal, 2 if different or not checked, and 1 on failure", async () => {
  verifies("beyond.hooks.reconcile-command", "beyond.hooks.not-checked");
  const { place, transcript } = await session();
  const equal = await reconcile(place, "claude-code-s");
  expect([equal.code, equal.out]).toEqual([0, "claude-code-s: equal: 1 asked, 1 ran\n"]);
  appendFileSync(transcript, used("hidden"));
  const different = await reconcile(place);
  expect([different.code, different.out]).toEqual([
    2,
    expect.stringMatching(
      /^claude-code-s: different: 1 asked, 2 ran\n {2}ran without asking: Bash hidden at /,
    ),
  ]);
  // The agent takes the line out again.
  writeFileSync(transcript, line({ type: "user", message: { content: "go on" } }) + used("t0"));
  const shorter = await reconcile(place, "--json");
  expect([shorter.code, JSON.parse(shorter.out).runs[0].not_checked]).toEqual([
    2,
    expect.stringContaining("is shorter than before"),
  ]);
  rmSync(transcript);
  expect((await reconcile(place)).out).toContain("not checked");
  const unknown = await reconcile(place, "claude-code-other");
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining("no session of a coding agent")]);
  const nowhere = await place.svc("reconcile", "--dir", join(place.home, "nowhere"));
  expect([nowhere.code, nowhere.err]).toEqual([2, expect.stringContaining("not checked")]);
  await place.server.stop();
});

it("is done by the hook when the session ends, and tells no input", async () => {
  verifies("beyond.hooks.reconcile-at-end", "beyond.hooks.reconciled");
  const { place, transcript } = await session();
  appendFileSync(transcript, used("hidden"));
  const end = { hook_event_name: "SessionEnd", transcript_path: transcript, tool_use_id: undefined };
  expect(await place.ask(end)).toEqual({ code: 0, out: "", err: "" });
  const trail = async () => (await place.svc("export", "--run", "claude-code-s")).out;
  await until(async () => (await trail()).includes('"reconciled"'), "the comparison");
  const exported = await trail();
  expect(exported).toContain("1 asked, 2 ran, 1 ungoverned, 0 unused; reported by claude-code");
  expect(exported).not.toContain("secret-place");
  await place.server.stop();
});
