/** Reports and bundles are made when somebody asks for one: time alone makes none. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";
import { writeKeyFiles } from "../../src/evidence/key-files.ts";
import { BackgroundTasks } from "../../src/operations/background/background.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const DAY_MS = 86_400_000;
const files = (folder: string) => readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();

it(`nothing schedules a report or a bundle ${verifies("ops.anchoring.no-scheduler")}`, async () => {
  const told: string[] = [];
  const hook = createServer((request, response) => {
    request.on("data", (chunk) => told.push(String(chunk))).on("end", () => response.end("{}"));
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  afterAll(() => void hook.close());
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
  const every = vi.spyOn(BackgroundTasks.prototype, "every");
  const keys = tempDir("keys");
  await writeKeyFiles(join(keys, "k"));
  const anchors = join(keys, "anchors.jsonl");
  // All background work is on, and could carry a report if there were one.
  const s = await testServer({
    policy: "version: 1\nretention: {default_days: 1}\n",
    config: `signing_key: ${join(keys, "k.key")}
anchor: {sinks: [{type: file, path: ${anchors}}], interval: 1d}
capture: {enabled: true}
archive_root: ${keys}
notifications: {channels: [{name: hook, type: webhook, url: "${url}"}]}
`,
  });
  const tasks = every.mock.calls.map(([, name, task]) => ({ name, task }));
  every.mockRestore();
  expect(tasks.length).toBeGreaterThan(3);
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read"] });
  await s.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "look" });
  await s.call("agent", "POST", "/v1/runs/r/steps/0/outcome", { status: "succeeded" });
  const lines = () => (existsSync(anchors) ? readFileSync(anchors, "utf8").split("\n").length - 1 : 0);
  await until(() => lines() > 0, "the first anchor");
  const before = [...files(s.folder), ...files(keys)];
  const { records } = (await s.call("auditor", "GET", "/v1/status")).body;

  for (let round = 0; round < 40; round++) {
    const seen = lines();
    // An anchor is written in real time; only the wait for the next one is the clock's.
    await until(async () => {
      await s.env.advance(DAY_MS);
      return lines() > seen;
    }, "the next anchor");
    for (const { task } of tasks) await task();
  }
  expect([...files(s.folder), ...files(keys)]).toEqual(before);
  expect((await s.call("auditor", "GET", "/v1/status")).body.records).toBe(records);
  expect(told.filter((text) => /report|bundle/i.test(text))).toEqual([]);
});
