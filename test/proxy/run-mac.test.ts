/**
 * `svc run` as macOS would start it, with a stand-in for `sandbox-exec` that keeps the profile and confines nothing. What
 * the profile holds back is untested.
 */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { upstream } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const BIN = join(import.meta.dirname, "../../bin/svc.js");
const folder = tempDir("mac");
const [home, work, bin] = ["home", "home/work", "bin"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
for (const path of [join(work, ".git/hooks"), bin]) mkdirSync(path, { recursive: true });
const api = await upstream((_, response) => response.end("done"));
const HOST = `127.0.0.1:${api.port}`;
const inFolder = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
// Native packages still load those of this machine.
const asMac = inFolder(
  "as-mac.mjs",
  `const own = process.platform;
Object.defineProperty(process, "platform", {
  get: () => (/node_modules|node:os/.test(new Error().stack.split("\\n")[2]) ? own : "darwin"),
});
`,
);
const config = inFolder(
  "svc.config.yaml",
  `data: data
manifests: manifests.yaml
allow_hosts: [127.0.0.1]
credentials: [{name: shop, hosts: [shop.test], header: {name: authorization}, from: {file: secret}}]
`,
);
inFolder("secret", "secret-of-the-shop\n");
inFolder(
  "manifests.yaml",
  `- {tool: api.get, effect: read, permission: api, http: {scheme: http, host: "${HOST}", method: GET, path: /}}\n`,
);
const profile = join(folder, "profile");
inFolder(
  "bin/sandbox-exec",
  `#!/bin/sh\n[ "$1" = -p ] || exit 99\nprintf %s "$2" > '${profile}'\nshift 2\nexec "$@"\n`,
);
chmodSync(join(bin, "sandbox-exec"), 0o755);

function run(path: string, ...command: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(
    process.execPath,
    ["--import", asMac, BIN, "run", "--config", config, "--", ...command],
    {
      cwd: work,
      env: { PATH: path, HOME: home, SECRET: "of-the-person" },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let [out, err] = ["", ""];
  child.stdout.on("data", (text: Buffer) => (out += text));
  child.stderr.on("data", (text: Buffer) => (err += text));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, err })));
}
const PATH = `${bin}:${process.env["PATH"]}`;

it("starts the command with the profile, and says that it is untested", async () => {
  verifies("beyond.run.mac-profile");
  const { code, out, err } = await run(PATH, "bash", "-c", "env; echo moved > deep.txt; exit 7");
  expect([code, err]).toEqual([7, expect.stringContaining("untested on macOS")]);
  const env = new Map(out.split("\n").map((line) => line.split(/=(.*)/s, 2) as [string, string]));
  expect(env.get("SECRET")).toBeUndefined();
  expect(env.get("HOME")).not.toBe(home);
  expect(existsSync(env.get("HOME")!)).toBe(false);
  const text = readFileSync(profile, "utf8");
  const { port } = new URL(env.get("HTTPS_PROXY")!);
  expect(text).toContain(`(allow network-outbound (remote ip "localhost:${port}"))`);
  for (const path of [join(work, ".git/hooks/pre-commit"), join(work, ".mcp.json")]) {
    const patterns = [...text.matchAll(/^\(deny file-write\* \(regex #"(.*)"\)\)$/gm)].map(([, one]) => one!);
    expect([path, patterns.some((one) => new RegExp(one).test(path))]).toEqual([path, true]);
  }
  expect((await run(PATH, "bash", "-c", "kill -TERM $$")).code).toBe(143);
});

it("lets the command alone use its proxy", async () => {
  verifies("beyond.run.mac-profile");
  const ask = `curl -s -o /dev/null -w '%{http_code} ' http://${HOST}/`;
  const { out } = await run(
    PATH,
    "bash",
    "-c",
    `${ask}; HTTP_PROXY= http_proxy=\${http_proxy/agent:*@/} ${ask}`,
  );
  expect(out.trim()).toBe("200 407");
  expect(api.seen).toHaveLength(1);
});

it("gives each credential a placeholder", async () => {
  verifies("beyond.run.placeholders");
  const { out } = await run(PATH, "env");
  for (const name of ["SHOP_TOKEN", "SHOP_API_KEY"]) expect(out).toContain(`${name}=placeholder-shop\n`);
  expect(out).not.toContain("secret-of-the-shop");
});

it("refuses without sandbox-exec", async () => {
  verifies("beyond.run.mac-profile");
  const { code, err } = await run("/nowhere", "true");
  expect([code, err]).toEqual([1, expect.stringContaining("needs sandbox-exec")]);
});
