/** Cards with `card.confirm`, as the pack of coding agents has them: in the console and on the command line. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { verifies } from "../support/verifies.ts";
import { type Client, loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const pack = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../packs/coding-agents/${name}`, import.meta.url)), "utf8");

let s: ConsoleServer;
let approver: Client;
beforeAll(async () => {
  s = await consoleServer({ manifests: pack("manifests.yaml"), policy: pack("policy.yaml") });
  approver = await loggedIn(s.url, "approver");
  const permissions = ["code.run", "code.reach", "code.destroy"];
  await s.api("agent", "POST", "/v1/runs", { run_id: "r", permissions });
});
afterAll(async () => s?.close());

async function request(tool: string, command: string): Promise<string> {
  const args = { client: "codex", command, cwd: "/src" };
  const { body } = await s.api("agent", "POST", "/v1/runs/r/intents", { tool, args, reason: "because" });
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}

const statusOf = async (id: string): Promise<string> =>
  (await s.api("approver", "GET", `/v1/approvals/${id}`)).body.status;
const cardOf = async (id: string) => (await s.api("approver", "GET", `/v1/approvals/${id}/card`)).body;
const cli = (...args: string[]) => svc([...args, "--server", s.url], { env: { SVC_TOKEN: "approver" } });

it.each(["shell_unknown", "shell_network", "shell_destructive"])(
  "code.%s is approved with the second gesture alone, and does not count as irreversible",
  async (tool) => {
    verifies("beyond.record.confirm");
    const id = await request(`code.${tool}`, "node x.js");
    const { card_hash, irreversible, confirm } = await cardOf(id);
    expect({ irreversible, confirm }).toEqual({ irreversible: false, confirm: true });
    const page = (await approver.get(`/console/approvals/${id}`)).text;
    expect(page).toContain("I have read the values.");
    expect(page).not.toContain("This call cannot be undone.");
    const path = `/console/approvals/${id}`;
    await approver.submit(path, { decision: "approve", card_hash });
    expect(await statusOf(id)).toBe("pending");
    await approver.submit(path, { decision: "approve", card_hash, irreversible: "yes" });
    expect(await statusOf(id)).toBe("approved");
  },
);

it("code.shell_packages is approved with one", async () => {
  verifies("beyond.record.confirm");
  const id = await request("code.shell_packages", "npm i x");
  const { card_hash, confirm } = await cardOf(id);
  expect(confirm).toBeUndefined();
  expect((await approver.get(`/console/approvals/${id}`)).text).not.toContain("I have read the values.");
  await approver.submit(`/console/approvals/${id}`, { decision: "approve", card_hash });
  expect(await statusOf(id)).toBe("approved");
});

it("such calls are decided one by one: not together in the console, or as a group on the command line", async () => {
  verifies("beyond.record.confirm");
  const ids = [
    await request("code.shell_unknown", "node a.js"),
    await request("code.shell_unknown", "node b.js"),
  ];
  const hashes = await Promise.all(ids.map(async (id) => (await cardOf(id)).card_hash));
  await approver.submit("/console/approvals", {
    id: `${ids[0]} ${hashes[0]}`,
    decision: "approve",
    confirmed: "1",
  });
  expect(await statusOf(ids[0]!)).toBe("pending");
  const refused = await cli("approvals", "approve", ids[0]!, "--group", "--yes");
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.err).toContain("a call that takes a second gesture must be decided without --group");
  expect(await Promise.all(ids.map(statusOf))).toEqual(["pending", "pending"]);
});
