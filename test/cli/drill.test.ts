/** `svc drill` through the upstreams of a configuration, as a person runs it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE, FAKE_MANIFESTS } from "../gateway/support/gateway.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("drill-cli");
const config = join(folder, "svc.config.yaml");
const put = (lines: string) =>
  writeFileSync(config, `manifests: manifests.yaml\ndata: data\nenvironment: staging\n${lines}`);
const upstreams = `upstreams: [{name: fake, command: "${process.execPath}", args: ["${FAKE}"], env: {FAKE_NAME: fake}}]\n`;
const manifests = (undo: string) =>
  writeFileSync(
    join(folder, "manifests.yaml"),
    FAKE_MANIFESTS.replace("compensation: {tool: delete,", `compensation: {tool: ${undo},`).replace(
      "- {tool: delete,",
      "  drill: {args: {n: 7}}\n- {tool: delete,",
    ),
  );

it("proves due undos, exits 1 if one failed, and refuses elsewhere", async () => {
  verifies(
    "beyond.drill.cli",
    "beyond.drill.no-upstreams",
    "beyond.drill.environments",
    "beyond.drill.words",
  );
  manifests("delete");
  put("");
  const none = await svc(["drill", "--config", config]);
  expect([none.code, none.err]).toEqual([1, expect.stringContaining("no upstreams are configured here")]);
  put(upstreams);
  const elsewhere = await svc(["drill", "--config", config]);
  expect([elsewhere.code, elsewhere.err]).toEqual([1, expect.stringContaining("this one is staging")]);
  put(`${upstreams}drills: {environments: [staging]}\n`);
  const good = await svc(["drill", "--due", "--upstream", "fake", "--config", config]);
  expect([good.code, good.out]).toEqual([0, expect.stringMatching(/^create {2}passed {2}run \S+\n$/)]);
  const proven = await svc(["impact", "create", "--config", config]);
  expect(proven.out).toMatch(/undo +delete \(.*, proven \d{4}-\d\d-\d\dT/);
  const fresh = await svc(["drill", "--due", "--config", config]);
  expect([fresh.code, fresh.err]).toEqual([0, expect.stringContaining("no drills are due")]);
  manifests("counted");
  const bad = await svc(["drill", "create", "--json", "--config", config]);
  expect(bad.code).toBe(1);
  expect(JSON.parse(bad.out).drills).toMatchObject([{ tool: "create", passed: false }]);
});
