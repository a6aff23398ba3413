/** `svc init` without a tool server: from an empty folder to a server with a console, without an option. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { startSvcServer, svc } from "../support/cli.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
beforeEach(() => {
  folder = tempDir("init-example");
});

it("writes files that a server starts with, and names the next commands", async () => {
  verifies("beyond.authors.init-example");
  const made = await speak(["init"], { cwd: folder });
  expect([made.code, made.err]).toEqual([0, ""]);
  for (const name of ["manifests/example.yaml", "policy.yaml", "svc.config.yaml"]) {
    expect(made.out).toContain(`wrote ${name}\n`);
    expect(readFileSync(join(folder, name), "utf8").match(/yaml-language-server/g), name).toHaveLength(1);
  }
  expect((await svc(["validate", "manifests"], { cwd: folder })).code).toBe(0);
  expect((await svc(["policy", "test", "policy.yaml"], { cwd: folder })).code).toBe(0);
  expect(made.out).toContain("svc keys add me --role admin ");
  const added = await svc(["keys", "add", "me", "--role", "admin"], { cwd: folder });
  const key = /svc_\S+/.exec(added.out + added.err)![0];
  const server = await startSvcServer([], { cwd: folder });
  onTestFinished(() => void server.stop());
  const status = await fetch(`${server.url}/v1/status`, { headers: { authorization: `Bearer ${key}` } });
  expect(await status.json()).toMatchObject({ manifests: 8, policy: { version: 1 } });
  expect((await fetch(`${server.url}/console/login`)).status).toBe(200);
});

it("replaces no file, and refuses options of a tool server", async () => {
  verifies("beyond.authors.init-example");
  writeFileSync(join(folder, "policy.yaml"), "version: 1\n");
  const kept = await speak(["init"], { cwd: folder });
  expect([kept.code, kept.err]).toEqual([1, expect.stringContaining("files already exist: policy.yaml;")]);
  expect(readFileSync(join(folder, "policy.yaml"), "utf8")).toBe("version: 1\n");
  const elsewhere = await speak(["init", "--dir", "other"], { cwd: folder });
  expect(elsewhere.out).toContain("svc server --config other/svc.config.yaml");
  for (const option of [["--name", "x"], ["--namespace"], ["--env", "A=b"], ["--header", "a: b"]])
    expect(await speak(["init", ...option], { cwd: folder })).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${option[0]}: only with --from`),
    });
});

it("names the option that helps when the port is taken", async () => {
  verifies("beyond.authors.init-example");
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await new Promise((resolve) => other.once("listening", resolve));
  const { port } = other.address() as AddressInfo;
  const { code, err } = await svc(["server", "--port", String(port)], { cwd: folder });
  expect([code, err]).toEqual([
    1,
    expect.stringContaining(`cannot listen on 127.0.0.1:${port}: the address`),
  ]);
  expect(err).toContain("pass --port");
});
