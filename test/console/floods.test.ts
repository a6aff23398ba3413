/** A flood in the console, in a real browser: grouped, and decided by the group. */
import { expect, it, onTestFinished } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.charge, args: {id: $args.id}}}
- {tool: pay.wire, effect: irreversible, permission: pay}
`;
const POLICY = `version: 1
approvals: {flood: {max: 1, window: 10m}}
rules: [{id: ask, match: {tool: "pay.*"}, action: require_approval, reason: ask}]
`;

it("shows requests alike as one group and decides them with one press, what nothing takes back apart", async () => {
  verifies("beyond.flood.console", "beyond.flood.irreversible-alone");
  const server = await consoleServer({ manifests: MANIFESTS, policy: POLICY });
  const browsing = await Browsing.at(server.url);
  onTestFinished(async () => {
    await browsing.close();
    await server.close();
  });
  for (let n = 0; n < 6; n++) {
    await server.api("agent", "POST", "/v1/runs", { run_id: `f${n}`, permissions: ["pay"] });
    const call = { tool: n < 4 ? "pay.refund" : "pay.wire", args: { id: n }, reason: "r" };
    await server.api("agent", "POST", `/v1/runs/f${n}/intents`, call);
  }
  const { page, open, complaints } = await browsing.as("approver");
  await open("/approvals");
  const groups = page.locator("section.group");
  expect(await groups.locator(".group-what").allInnerTexts()).toEqual([
    "4 requests by agent: pay.refund, rule ask",
    "2 requests by agent: pay.wire, rule ask",
  ]);
  expect(await groups.first().locator("p.soft").first().innerText()).toBe(
    "The first: Call pay.refund, because “r”",
  );
  expect(await groups.getByRole("button").allInnerTexts()).toEqual(["Approve all 4", "Deny all 4"]);
  expect(await inaccessible(page)).toEqual([]);
  await page.getByLabel("Note for the group").fill("the fair");
  await page.getByRole("button", { name: "Approve all 4" }).click();
  expect(await page.locator("main .notice").first().innerText()).toBe("4 requests approved.");
  const { approvals } = (await server.api("auditor", "GET", "/v1/approvals")).body;
  const tools = (wanted: string) =>
    approvals.flatMap(({ tool, status }: Record<string, string>) => (status === wanted ? [tool] : []));
  expect(tools("approved")).toEqual(Array(4).fill("pay.refund"));
  expect(tools("pending")).toEqual(["pay.wire", "pay.wire"]);
  const lines = await server.app.core.store.records({ event: "approved", limit: 10 });
  expect(new Set(lines.map((line) => /; card (sha256:[0-9a-f]{64})/.exec(line)?.[1])).size).toBe(4);
  expect(complaints).toEqual([]);
});
