/** Recorded contents of a run: kept by a legal hold, and removed once the service deleted the run. */
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { ContentStore, recordFolder } from "../../src/hook/record/content-store.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import { sweepRecords } from "../../src/hook/record/sweep.ts";
import { sweepDeletedRuns } from "../../src/hook/record/sweep-deleted.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { consoleServer, shiftedEnv } from "../console/support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const pack = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../packs/coding-agents/${name}`, import.meta.url)), "utf8");
const DAY = 86_400_000;

it("stays while a legal hold keeps the run, and goes with the run afterwards", async () => {
  verifies("beyond.record.legal-hold");
  const env = shiftedEnv();
  const s = await consoleServer({
    manifests: pack("manifests.yaml"),
    policy: `${pack("policy.yaml")}\nretention: {default_days: 1}\n`,
    config: "console: off\n",
    env,
  });
  const folder = tempDir("kept");
  const cwd = tempDir("kept-cwd");
  mkdirSync(folder, { recursive: true });
  const settings = {
    ...{ server: s.url, key: "agent", mode: "enforce", folder, notes: join(folder, "notes") },
    ...{ protect: [], home: folder, config_option: "", snapshot: SNAPSHOT_DEFAULTS },
  } as HookSettings;
  const path = join(cwd, "a");
  writeFileSync(path, "first");
  const event = { session_id: "s", cwd, tool_name: "Write", tool_use_id: "t" };
  const send = (hook_event_name: string) => {
    const tool_input = { file_path: path, content: "x" };
    const text = JSON.stringify({ ...event, hook_event_name, tool_input, tool_response: {} });
    return handleEvent("claude-code", text, () => settings);
  };
  expect((await send("PreToolUse")).code).toBe(0);
  writeFileSync(path, "second");
  await send("PostToolUse");
  await send("Stop");
  const record = recordFolder(folder);
  const contents = () => {
    const top = join(record, "objects");
    return readdirSync(top).flatMap((name) =>
      readdirSync(join(top, name)).map((one) => join(top, name, one)),
    );
  };
  const sweep = async () => {
    for (const one of contents()) utimesSync(one, 1, 1);
    const own = {
      sweep: async (deleted: readonly string[]) =>
        void sweepRecords(new ContentStore(record, false), deleted),
    };
    await sweepDeletedRuns(folder, own, () => settings);
    return contents().length;
  };
  const hold = await s.api("admin", "POST", "/v1/holds", { run_id: "claude-code-s", reason: "a dispute" });
  expect(hold.status).toBe(201);
  env.forward(3 * DAY);
  await s.api("admin", "POST", "/v1/retention/apply", {});
  expect(await sweep()).toBe(1);
  await s.api("admin", "DELETE", `/v1/holds/${hold.body.id}`);
  await s.api("admin", "POST", "/v1/retention/apply", {});
  expect((await s.api("auditor", "GET", "/v1/runs/claude-code-s")).status).toBe(404);
  expect(await sweep()).toBe(0);
  await s.close();
});
