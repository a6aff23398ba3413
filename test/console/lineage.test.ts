/** Where values came from, on the run's page and on the command line, against one server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { loggedIn } from "./support/client.ts";
import { consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: mail.read, effect: read, permission: p, risk: {source: mail}}
- {tool: note.add, effect: idempotent, permission: p}
`;
const POLICY = `version: 1
flows: [{id: injected, after: {source: mail}, then: {sink: internet}, carries: true}]
`;

it("draws which results fed which calls, and prints the same", async () => {
  verifies("beyond.value.lineage-surfaces");
  const server = await consoleServer({
    manifests: MANIFESTS,
    policy: POLICY,
    keys: [{ name: "giver", role: "agent", max_permissions: ["p"], may_give: true }],
  });
  onTestFinished(() => server.close());
  const post = async (path: string, body: object) => {
    const answer = await server.api("giver", "POST", path, body);
    expect(answer.status).toBeLessThan(300);
  };
  await post("/v1/runs", { run_id: "fed", permissions: ["p"], given: ["tidy up"] });
  await post("/v1/runs/fed/intents", { tool: "mail.read", args: {}, reason: "r" });
  await post("/v1/runs/fed/steps/0/outcome", { status: "succeeded", result: "from eve@evil.example" });
  await post("/v1/runs/fed/intents", { tool: "note.add", args: { text: "eve@evil.example" }, reason: "r" });
  const client = await loggedIn(server.url, "auditor");
  const { text } = await client.get("/console/runs/fed");
  const card = /<section[^>]*id="lineage"[\s\S]*?<\/section>/.exec(text)?.[0] ?? text;
  expect(card).toContain("step 0 to step 1: an email address");
  expect(card.replace(/<[^>]+>/g, "")).toContain(
    "$args.text of step 1 note.add holds an email address from step 0 mail.read",
  );
  expect(text.replace(/<[^>]+>/g, "")).toMatch(/1 text, the last .*\(7 characters\)/);
  expect(card).not.toContain("eve@evil.example");
  const folder = tempDir("lineage");
  const key = join(folder, "auditor.key");
  writeFileSync(key, "auditor\n", { mode: 0o600 });
  const svc = (...args: string[]) =>
    speak(["lineage", "fed", ...args, "--server", server.url, "--key-file", key], { cwd: folder });
  const printed = await svc();
  expect(printed).toMatchObject({
    code: 0,
    out: "step 0 mail.read  ->  step 1 note.add  $args.text  address\n",
  });
  const none = await svc("7");
  expect(none).toMatchObject({ code: 0, out: "", err: "no call carries a value from an earlier result\n" });
  const json = JSON.parse((await svc("1", "--json")).out);
  expect(json.edges).toEqual([
    { from: { run_id: "fed", step: 0 }, to: { run_id: "fed", step: 1, path: "$args.text" }, kind: "address" },
  ]);
});
