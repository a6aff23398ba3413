/** `npm start` in a fresh clone: installs, builds, serves a demo, and prints what a newcomer can paste. */
import { execFile, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { ROOT } from "../support/files.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

/** A clone without its dependencies, and an npm that "installs" by linking ours. */
function freshClone(): { folder: string; npm: string; installs: () => string[] } {
  const folder = join(tempDir("clone"), "svc");
  mkdirSync(folder);
  for (const name of [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "scripts",
    "bin",
    "src",
    "examples",
  ]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  const npm = join(folder, "..", "npm-cli.js");
  const log = join(folder, "..", "npm.log");
  writeFileSync(
    npm,
    `const fs = require("node:fs");
fs.appendFileSync(${JSON.stringify(log)}, process.argv.slice(2).join(" ") + "\\n");
fs.symlinkSync(${JSON.stringify(join(ROOT, "node_modules"))}, "node_modules");
`,
  );
  return {
    folder,
    npm,
    installs: () => (existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []),
  };
}

async function start(folder: string, script: string, npm: string, ...args: string[]) {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], PORT: "0", npm_execpath: npm },
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await until(() => {
    if (child.exitCode !== null) throw new Error(`it ended: ${err}`);
    return out.includes("Ctrl-C stops it");
  }, "the demo to be ready");
  return {
    out: () => out,
    stop: () => {
      child.kill("SIGINT");
      return ended;
    },
  };
}

const run = async (line: string) => JSON.parse((await promisify(execFile)("sh", ["-c", line])).stdout);
// The lines to paste call it.
await program("curl");

/** What the agent did can be looked at, decided and taken back: it was done for real. */
async function checkStory(text: string, url: string, keys: Record<string, string>, folder: string) {
  verifies("beyond.first.story", "beyond.first.link");
  expect(text).toMatch(/^ {2}http:\/\/127\.0\.0\.1:\d+\/console\/login\/link\?token=[\w-]{43}$/m);
  const ask = async (role: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}/v1${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${keys[role]}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return JSON.parse(await response.text());
  };
  const { approvals } = await ask("auditor", "/approvals?status=pending");
  expect(approvals).toMatchObject([{ tool: "payments.refund", run_id: "ticket-4833" }]);
  const { alerts } = await ask("auditor", "/alerts");
  expect(alerts.map(({ kind }: { kind: string }) => kind)).not.toContain("undo_closing");
  const trail = async (run_id: string) =>
    (await ask("auditor", `/search/records?run_id=${run_id}`)).records as {
      event: string;
      detail?: string;
    }[];
  expect((await trail("ticket-4829")).map(({ detail }) => detail)).toContainEqual(
    expect.stringContaining("a list of customers does not leave by mail; follows step 0"),
  );
  expect((await trail("ticket-4831")).map(({ event }) => event)).toContain("uncertain");
  expect((await trail("ticket-4817")).filter(({ event }) => event === "succeeded")).toHaveLength(4);

  const desk = () => JSON.parse(readFileSync(join(folder, ".demo", "desk.json"), "utf8"));
  expect(desk().contacts["c-772"].note).toBe("duplicate");
  await ask("operator", "/runs/ticket-4826/rollback", { confirm: true });
  const job = async () => (await ask("operator", "/runs/ticket-4826/rollback")).job;
  await until(async () => (await job()).state === "done", "the rollback to end");
  expect((await job()).report).toMatchObject({ complete: true });
  expect(desk().contacts["c-772"].note).toBe("");
  expect(desk().contacts["c-771"].note).toBe("refunded 45 EUR for A-1204");
}

describe("npm start", () => {
  it("is enough in a fresh clone, and its lines can be pasted", async () => {
    verifies(
      "contract.start.npm-start",
      "contract.start.npm-start-examples",
      "contract.start.npm-start-policy",
      "contract.start.npm-start-prints-keys",
      "contract.start.npm-start-prints-curl",
      "contract.start.npm-start-prints-console",
    );
    const { folder, npm, installs } = freshClone();
    const demo = await start(folder, "scripts/start.mjs", npm);
    expect(installs()).toEqual(["ci --include=dev"]);
    const text = demo.out();
    const url = /svc is running at (http:\S+)/.exec(text)![1]!;
    const keys = Object.fromEntries(
      [...text.matchAll(/^ {2}(agent|auditor|approver|operator|admin) +(svc_\S+)$/gm)].map(
        ([, role, key]) => [role, key],
      ),
    );
    expect(Object.keys(keys)).toEqual(["agent", "auditor", "approver", "operator", "admin"]);
    for (const role of ["auditor", "approver", "operator", "admin"]) {
      const shown = text.split(keys[role]!).length - 1;
      expect(shown, role).toBe(role === "auditor" ? 2 : 1);
    }
    expect(readFileSync(join(folder, ".demo", "keys.json"), "utf8")).not.toContain(keys["admin"]);

    const lines = text.split("\n").filter((line) => /^ {2}curl .*\/intents /.test(line));
    const answers = [];
    for (const line of lines) answers.push(await run(line));
    expect(answers).toEqual([
      { decision: "allow", step: 0 },
      { decision: "block", reasons: expect.arrayContaining([expect.any(String)]) },
    ]);
    const status = await run(`curl -s ${url}/v1/status -H 'authorization: Bearer ${keys["auditor"]}'`);
    expect(status).toMatchObject({ store: "files", environment: "demo" });
    expect(status.manifests).toBeGreaterThan(3);
    expect(status.policy.rules).toBeGreaterThan(0);

    const shown = /^console +(http:\S+)/m.exec(text)![1]!;
    expect(shown).toBe(`${url}/console`);
    const page = await fetch(shown);
    expect([page.status, page.url.split("?")[0]]).toEqual([200, `${url}/console/login`]);
    expect(await page.text()).toMatch(/<form[^>]*method="post"/i);
    await checkStory(text, url, keys, folder);
    expect(await demo.stop()).toBe(0);

    // A second one finds everything built, and makes keys of its own.
    verifies("beyond.first.empty");
    const again = await start(folder, "dist/cli/demo.js", npm, "--empty");
    expect(again.out()).not.toContain(keys["admin"]!);
    const [, at, key] = /curl -s (\S+)\/v1\/runs\/\S+\/export -H 'authorization: Bearer (\S+)'/.exec(
      again.out(),
    )!;
    expect((await run(`curl -s ${at}/v1/runs -H 'authorization: Bearer ${key}'`)).runs).toHaveLength(1);
    expect(await again.stop()).toBe(0);
  });
});
