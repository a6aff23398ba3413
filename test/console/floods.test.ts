/** A flood in the console, in a real browser: grouped, and decided by the group. */
import { expect, it, onTestFinished } from "vitest";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.charge, args: {id: $args.id}}}
- {tool: pay.wire, effect: irreversible, permission: pay}
`;
const POLICY = `version: 1
approvals: {flood: {max: 1, window: 10m}}
rules: [{id: ask, match: {tool: "pay.*"}, action: require_approval, reason: ask}]
`;

it("shows similar requests as a table and decides them after a confirmation, irreversible ones separately", async () => {
  verifies(
    "beyond.flood.console",
    "beyond.flood.irreversible-alone",
    "beyond.flood.marks",
    "beyond.flood.confirm",
  );
  const server = await consoleServer({ manifests: MANIFESTS, policy: POLICY });
  const browsing = await Browsing.at(server.url);
  onTestFinished(async () => {
    await browsing.close();
    await server.close();
  });
  for (let n = 0; n < 6; n++) {
    await server.api("agent", "POST", "/v1/runs", { run_id: `f${n}`, permissions: ["pay"] });
    const args = { id: n, currency: "EUR", amount: n === 2 ? 1_840 : 10 + n };
    const call = { tool: n < 4 ? "pay.refund" : "pay.wire", args, reason: "r" };
    await server.api("agent", "POST", `/v1/runs/f${n}/intents`, call);
  }
  const { page, open, complaints } = await browsing.as("approver");
  await open("/approvals");
  const groups = page.locator("section.group");
  expect(await groups.locator(".group-what").allInnerTexts()).toEqual([
    "4 requests by agent: pay.refund, rule ask",
    "2 requests by agent: pay.wire, rule ask",
  ]);
  expect(await groups.nth(1).locator(".request-facts").first().innerText()).toContain(
    "irreversible, each decided separately",
  );
  const rows = groups.first().locator(".group-table tbody tr");
  expect(await rows.first().innerText()).toMatch(/unusual[\s\S]*1840/);
  expect(await groups.first().locator("dl.same").innerText()).toMatch(/currency\s+EUR/);
  expect(await groups.getByRole("button").allInnerTexts()).toEqual(["Approve all 4 …", "Deny all 4 …"]);
  expect(await inaccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve all 4" }).click();
  expect(await page.locator("h1").innerText()).toBe("Approve 4 requests?");
  expect(await page.locator("main h2").first().innerText()).toBe(
    "Approve 4 requests for pay.refund by agent: id 0 to 3; amount 10 to 1840; currency EUR?",
  );
  expect(await page.locator(".group-table tbody tr").count()).toBe(4);
  expect(await inaccessible(page)).toEqual([]);
  expect((await server.api("auditor", "GET", "/v1/approvals?status=approved")).body.approvals).toEqual([]);
  await page.getByLabel("Note for all").fill("the fair");
  await page.getByRole("button", { name: "Approve 4 requests" }).click();
  expect(await page.locator("main .notice").first().innerText()).toBe("4 requests approved.");
  const { approvals } = (await server.api("auditor", "GET", "/v1/approvals")).body;
  const tools = (wanted: string) =>
    approvals.flatMap(({ tool, status }: Record<string, string>) => (status === wanted ? [tool] : []));
  expect(tools("approved")).toEqual(Array(4).fill("pay.refund"));
  expect(tools("pending")).toEqual(["pay.wire", "pay.wire"]);
  const lines = await server.app.core.store.records({ event: "approved", limit: 10 });
  expect(
    new Set(lines.map((line) => / in a group of 4: the fair; card (sha256:[0-9a-f]{64})/.exec(line)?.[1]))
      .size,
  ).toBe(4);
  expect(complaints).toEqual([]);
});

it("decides only what its page lists, leaves out the rest, and shows values to nobody else", async () => {
  verifies("beyond.flood.bounded", "beyond.flood.values", "beyond.flood.confirm");
  const server = await consoleServer({ manifests: MANIFESTS, policy: POLICY });
  onTestFinished(() => server.close());
  for (const run_id of ["even", "odd"])
    await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  for (let n = 0; n < SERVICE_LIMITS.group_rows + 5; n++) {
    const args = { id: n, to: `recipient-${n}`, text: "x".repeat(n === 50 ? 5_000 : 10) };
    const run = n % 2 === 0 ? "even" : "odd";
    await server.api("agent", "POST", `/v1/runs/${run}/intents`, { tool: "pay.refund", args, reason: "r" });
  }
  await server.api("agent", "POST", "/v1/runs/odd/intents", {
    tool: "pay.wire",
    args: { id: 1 },
    reason: "r",
  });
  const auditor = await loggedIn(server.url, "auditor");
  expect((await auditor.get("/console/approvals")).text).not.toContain("recipient-");
  const approver = await loggedIn(server.url, "approver");
  const listed = (await approver.get("/console/approvals")).text;
  expect(listed).toContain("This table shows 5 of 105 requests");
  const every = (await server.api("approver", "GET", "/v1/approvals?limit=500")).body.approvals;
  const id = every.map((one: { id: string }) => one.id);
  const asked = await approver.submit("/console/approvals", { id, decision: "approve", note: "one note" });
  expect(asked.status).toBe(200);
  expect(asked.text).toContain(
    "This page lists 100 of the 106 selected requests: 1 must be decided separately, or by someone else; 5 do not fit on this page.",
  );
  expect(asked.text).toContain("(5,000 characters)");
  expect(asked.text).toContain("x".repeat(5_000));
  const sent = [...asked.text.matchAll(/name="id" value="(apr_\S+ sha256:[0-9a-f]{64})"/g)].map(
    ([, one]) => one!,
  );
  expect(sent).toHaveLength(SERVICE_LIMITS.group_rows);
  // Another number than the page repeats is asked about again; so is a press without one.
  for (const confirmed of ["", "99", "106"])
    expect(
      (await approver.submit("/console/approvals", { id: sent, decision: "approve", confirmed })).status,
    ).toBe(200);
  const over = { id, decision: "approve", confirmed: String(id.length) };
  expect((await approver.submit("/console/approvals", over)).status).toBe(400);
  expect((await server.api("auditor", "GET", "/v1/approvals?status=approved")).body.approvals).toEqual([]);
  const done = await approver.submit("/console/approvals", {
    id: sent,
    decision: "approve",
    confirmed: "100",
  });
  expect(done.status).toBe(303);
  const left = (await server.api("auditor", "GET", "/v1/approvals?status=pending&limit=500")).body.approvals;
  expect(left.map(({ tool }: { tool: string }) => tool).sort()).toEqual([
    ...Array(5).fill("pay.refund"),
    "pay.wire",
  ]);
});

it("keeps the buttons of a group in reach, with a line for each request", async () => {
  verifies("beyond.phone.in-reach");
  const server = await consoleServer({ manifests: MANIFESTS, policy: POLICY });
  const browsing = await Browsing.at(server.url);
  onTestFinished(async () => {
    await browsing.close();
    await server.close();
  });
  for (let id = 0; id < 9; id++) {
    await server.api("agent", "POST", "/v1/runs", { run_id: `reach${id}`, permissions: ["pay"] });
    const call = { tool: "pay.refund", args: { id, amount: 5 }, reason: "r" };
    await server.api("agent", "POST", `/v1/runs/reach${id}/intents`, call);
  }
  const { page, open } = await browsing.as("approver", { phone: true });
  await open("/approvals");
  const isSeen = (text: string) =>
    page.evaluate(`(() => {
      const button = [...document.querySelectorAll("button")].find((one) => one.textContent.startsWith("${text}"));
      const { top, bottom, left, width } = button.getBoundingClientRect();
      return document.elementFromPoint(left + width / 2, (top + bottom) / 2) === button;
    })()`);
  const row = page.locator(".group-table tbody tr").first();
  expect((await row.boundingBox())!.height).toBeLessThan(60);
  await page.evaluate('document.querySelector(".group-table tbody tr").scrollIntoView({ block: "center" })');
  for (const text of ["Approve all 9", "Deny all 9"]) await expect.poll(() => isSeen(text)).toBe(true);
  await page.getByRole("button", { name: /^Approve all 9/ }).tap();
  const approve = "Approve 9 requests";
  await page.getByRole("button", { name: approve }).waitFor();
  for (const at of [0, 300]) {
    await page.evaluate(`scrollTo(0, ${at})`);
    await expect.poll(() => isSeen(approve)).toBe(true);
  }
  expect(await scrollsSideways(page)).toBe(false);
  expect(await inaccessible(page)).toEqual([]);
});
