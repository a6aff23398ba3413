/** The MCP gateway, used from inside `svc run` by a real MCP client. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { testGateway } from "../gateway/support/gateway.ts";
import { svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

await program("bubblewrap");

it("reaches the gateway by its name alone, and is governed there", async () => {
  verifies("beyond.run.gateway");
  const g = await testGateway({
    policy: "version: 1\nrules:\n  - {id: no-rows, match: {tool: create}, action: deny}\n",
  });
  const home = tempDir("gateway-inside");
  const workspace = join(home, "work");
  mkdirSync(workspace);
  await build({
    entryPoints: [join(import.meta.dirname, "support/inside-client.mjs")],
    outfile: join(workspace, "client.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    // Some of its dependencies are CommonJS.
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    logLevel: "error",
  });
  const config = join(home, "svc.config.yaml");
  writeFileSync(
    join(home, "manifests.yaml"),
    "- {tool: net.connect, effect: irreversible, permission: net}\n",
  );
  writeFileSync(config, "manifests: manifests.yaml\ndata: data\n");
  const run = (...options: string[]) =>
    svc(["run", "--config", config, ...options, "--", "node", "client.mjs", `${g.url}/mcp`, "agent"], {
      cwd: workspace,
      env: { HOME: home },
    });

  const refused = await run();
  expect([refused.code, await g.trail()]).toEqual([1, []]);

  const { out, err } = await run("--allow-host", "127.0.0.1");
  const { tools, answers } = JSON.parse(out || `{"answers": ${JSON.stringify(err)}}`);
  expect(answers).toMatchObject([{ content: [{ type: "text" }] }, { isError: true }]);
  expect(tools).toEqual(expect.arrayContaining(["echo", "create"]));
  const trail = await g.trail();
  expect(trail.map(({ event, tool }) => `${event} ${tool ?? ""}`)).toEqual(
    expect.arrayContaining(["succeeded echo", "blocked create"]),
  );
  expect(new Set(trail.map(({ actor }) => actor))).toEqual(new Set(["agent"]));
});
