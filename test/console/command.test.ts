/** `svc console`: a console over a data directory, for the user of the machine. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { tempDir, tempFile } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { Client } from "./support/client.ts";
import { MANIFESTS } from "./support/server.ts";

const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

function start(args: string[]): Promise<{ url: string; child: ChildProcess }> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" };
  const child = spawn(process.execPath, [BIN, "console", ...args], {
    env,
    cwd: tempDir(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  return new Promise((resolve, reject) => {
    let text = "";
    const hear = (part: Buffer) => {
      text += part;
      const url = /console on (http:\/\/127\.0\.0\.1:\d+)\/console/.exec(text)?.[1];
      if (url !== undefined) resolve({ url, child });
    };
    child.stdout!.on("data", hear);
    child.stderr!.on("data", hear);
    child.once("exit", (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
}

it(`serves the open mode on loopback, with a role of one's choice ${verifies("contract.start.console", "core.cli.console")}`, async () => {
  const manifests = tempFile("manifests.yaml", MANIFESTS);
  const data = tempDir("console-data");
  const { url, child } = await start(["-d", data, "-m", manifests, "--port", "0", "--role", "approver"]);
  const client = new Client(url);
  const page = await client.get("/console");
  expect(page.status).toBe(200);
  expect(page.text).toContain("local-console");
  expect(page.text).toContain("approver, no login");
  expect((await client.get("/console/tools")).text).toContain("crm.create");
  expect((await client.get("/console", { host: "evil.com" })).status).toBe(403);
  expect((await client.submit("/console/runs/any/rollback", { confirm: "yes" })).status).toBe(403);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  expect(await ended).toBe(0);
});

it("never acts as admin", async () => {
  const { code, err } = await svc(["console", "-d", tempDir(), "--role", "admin"]);
  expect(code).toBe(1);
  expect(err).toContain("an open console never acts as admin");
});
