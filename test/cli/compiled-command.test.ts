/** The command's script with V8's compiled code, which a build leaves for its own Node. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { commandScript } from "../../src/cli/compiled-command.ts";
import { startSvcServer, svc } from "../support/cli.ts";
import { filesUnder, ROOT } from "../support/files.ts";
import { tempDir } from "../support/tmp.ts";

const url = new URL("dist/shared/command.cjs", pathToFileURL(`${ROOT}/`));
const cache = new URL(`command-${process.version}-${process.arch}.cache`, url);

it("is there after a build, and V8 takes it", () => {
  expect(existsSync(cache)).toBe(true);
  expect(commandScript(url, readFileSync(cache)).cachedDataRejected).toBe(false);
});

it("serves the texts of the sources, also those that are not ASCII", async () => {
  const folder = tempDir("compiled");
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  const config = "manifests: manifests.yaml\nconsole: login\nkeys: keys.json\n";
  writeFileSync(join(folder, "svc.config.yaml"), config);
  await svc(["keys", "add", "root", "--role", "admin"], { cwd: folder });
  const server = await startSvcServer([], { cwd: folder });
  onTestFinished(() => server.stop().then(() => undefined));
  const page = await (await fetch(`${server.url}/console/login`)).text();
  expect(page).toContain("<title>Log in \u00b7 svc</title>");
});

it("is refused when it is cut short, so that the modules run", () => {
  const cut = readFileSync(cache).subarray(0, -8);
  expect(commandScript(url, cut).cachedDataRejected).toBe(true);
});

it("stays out of the package, whose Node is another", () => {
  const { files } = JSON.parse(readFileSync(new URL("package.json", pathToFileURL(`${ROOT}/`)), "utf8"));
  expect(files).toContain("!dist/shared/command.cjs");
  expect(files).toContain("!dist/shared/*.cache");
  expect(filesUnder("dist", ".cache").every((path) => path.startsWith("dist/shared/"))).toBe(true);
});
