/** Every form, filled in and sent in a real browser, and what it did to the service. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, type Visitor } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "./support/server.ts";

const COMPENSATOR = `let text = "";
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", () => process.exit(JSON.parse(text).args.id === "stuck" ? 1 : 0));
`;

let server: ConsoleServer;
const env = shiftedEnv();
let browsing: Browsing;
let hook: { url: string; bodies: string[]; close(): void };
let run = "";
let runs = 0;

beforeAll(async () => {
  hook = await receiver();
  server = await consoleServer({
    env,
    config: `console: login
capture: {enabled: true}
signing_key: evidence.key
archive_root: $FOLDER/archive
anchor: {sinks: [{type: file, path: $FOLDER/anchors.jsonl}]}
registry: {manifests: $FOLDER/registry, policies: $FOLDER/policies}
rollback: {compensator_cmd: "node $FOLDER/compensate.mjs"}
notifications: {channels: [{name: hook, type: webhook, url: "${hook.url}"}]}
`,
    files: { "evidence.key": newKeyPair().private_pem, "compensate.mjs": COMPENSATOR },
    keys: [
      { name: "deputy", role: "auditor" },
      { name: "rogue", role: "agent" },
    ],
  });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
  hook?.close();
});
beforeEach(async () => {
  run = `form-${++runs}`;
  await server.api("agent", "POST", "/v1/runs", {
    run_id: run,
    permissions: ["crm.read", "crm.write", "pay.refund", "mail.send"],
  });
});

async function receiver() {
  const bodies: string[] = [];
  const http = createServer((request, response) => {
    let text = "";
    request.on("data", (part) => {
      text += part;
    });
    request.on("end", () => {
      bodies.push(text);
      response.end();
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/hook`,
    bodies,
    close: () => void http.close(),
  };
}

const ask = async (tool: string, args: object, reason = "because") =>
  (await server.api("agent", "POST", `/v1/runs/${run}/intents`, { tool, args, reason })).body;
const report = (step: number, status: string, more: object = {}) =>
  server.api("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, { status, ...more });
async function succeed(tool: string, args: object, result: object): Promise<number> {
  const { step } = await ask(tool, args);
  await report(step, "succeeded", { result });
  return step;
}
const lastRecord = async (event: string) =>
  (await server.api("auditor", "GET", `/v1/search/records?event=${event}&limit=1`)).body.records[0];

async function using(
  key: string,
  work: (page: Page, visitor: Visitor) => Promise<void>,
  script = true,
): Promise<void> {
  const visitor = await browsing.as(key, { script });
  await work(visitor.page, visitor);
  expect(visitor.complaints).toEqual([]);
  await visitor.context.close();
}
const agree = (page: Page, verb: string) =>
  page.locator("dialog[open]").getByRole("button", { name: verb }).click();
const said = (page: Page) => page.locator("main .notice").first().innerText();

describe("approvals", () => {
  it(`approves and denies with a note ${verifies("core.console.approvals")}`, async () => {
    const asked = [await ask("pay.refund", { amount: 900 }), await ask("pay.refund", { amount: 901 })];
    const [first, second] = asked.map(({ reasons }) => /apr_[\w-]+/.exec(reasons.at(-1))![0]);
    await using("approver", async (page, { open }) => {
      await open(`/approvals/${first}`);
      const card = page.locator(`article#${first}`);
      await card.getByLabel("Note").fill("the provider confirms it");
      await card.getByRole("button", { name: "Approve", exact: true }).click();
      expect(await said(page)).toBe("Approved: pay.refund for agent.");
      await open(`/approvals/${second}`);
      await page.locator(`article#${second}`).getByLabel("Note").fill("not twice");
      await page.locator(`article#${second}`).getByRole("button", { name: "Deny", exact: true }).click();
      expect(await said(page)).toBe("Denied: pay.refund for agent.");
      await page.getByRole("link", { name: "Decided" }).click();
      expect(await page.locator("tbody").innerText()).toContain("the provider confirms it");
    });
    expect((await server.api("auditor", "GET", `/v1/approvals/${first}`)).body).toMatchObject({
      status: "approved",
      decided_by: "approver",
      note: "the provider confirms it",
    });
    expect((await server.api("auditor", "GET", `/v1/approvals/${second}`)).body).toMatchObject({
      status: "denied",
      note: "not twice",
    });
  });

  it("decides several at once, with and without a script", async () => {
    for (const script of [true, false]) {
      await ask("pay.refund", { amount: 1_000, script });
      await ask("pay.refund", { amount: 1_001, script });
      await using(
        "approver",
        async (page, { open }) => {
          await open("/approvals");
          for (const box of await page.getByLabel("Select this request").all()) await box.check();
          await page.getByText("Decide several of").click();
          await page.getByRole("button", { name: "Deny selected" }).click();
          expect(await page.locator("main h2").first().innerText()).toContain(
            "Deny 2 requests for pay.refund by agent: amount 1000 to 1001",
          );
          await page.getByRole("button", { name: "Deny 2 requests" }).click();
          expect(await said(page)).toBe("2 requests denied.");
          expect(await page.locator("main").innerText()).toContain("No pending requests");
        },
        script,
      );
    }
  });

  it("breaks glass, for admins, after asking back", async () => {
    await ask("pay.refund", { amount: 2_000 });
    await using("admin", async (page, { open }) => {
      await open("/approvals");
      await page.getByText("Break glass").click();
      await page.getByLabel("Why it cannot wait").fill("the shop is down and nobody else is awake");
      await page.getByRole("button", { name: "Approve alone" }).click();
      await agree(page, "Cancel");
      await page.getByRole("button", { name: "Approve alone" }).click();
      await agree(page, "Break glass");
      expect(await said(page)).toContain("Approved alone");
    });
    expect((await lastRecord("approved")).detail).toBe(
      "break-glass: the shop is down and nobody else is awake",
    );
  });

  it("delegates authority, lets the deputy decide, and revokes it", async () => {
    await using("approver", async (page, { open }) => {
      await open("/approvals");
      await page.getByText("Delegate my authority").click();
      await page.getByLabel("To (name of a key or user)").fill("deputy");
      await page.getByLabel("Reason", { exact: true }).fill("on leave");
      await page.getByRole("button", { name: "Delegate", exact: true }).click();
      expect(await said(page)).toBe("deputy can now decide for you.");
    });
    await ask("pay.refund", { amount: 3_000 });
    await using("deputy", async (page, { open }) => {
      await open("/approvals");
      await page.getByRole("button", { name: "Deny", exact: true }).click();
      expect(await said(page)).toContain("Denied");
    });
    await using("approver", async (page, { open }) => {
      await open("/approvals");
      await page.getByRole("button", { name: "Revoke" }).click();
      expect(await said(page)).toBe("deputy can no longer decide for you.");
    });
  });

  it("reports that somebody was faster", async () => {
    const { reasons } = await ask("pay.refund", { amount: 4_000 });
    const id = /apr_[\w-]+/.exec(reasons.at(-1))![0];
    const { page, open, context } = await browsing.as("approver", { script: false });
    await open("/approvals");
    await server.api("operator", "POST", `/v1/approvals/${id}/deny`, {});
    await page.locator(`article#${id}`).getByRole("button", { name: "Approve", exact: true }).click();
    expect(await page.locator("main").innerText()).toContain("Something has changed since");
    await page.getByRole("link", { name: "Back" }).click();
    expect(await page.locator("h1").innerText()).toBe("Approvals");
    await context.close();
  });
});

describe("a run", () => {
  it(`resolves a step whose outcome nobody knows ${verifies("core.console.run-resolve")}`, async () => {
    const { step } = await ask("crm.create", { name: "Ann" });
    await report(step, "uncertain", { error: "timeout" });
    await using("operator", async (page, { open }) => {
      await open(`/runs/${run}`);
      await page.getByText("Resolve: record the outcome").click();
      await page.getByLabel("What happened").selectOption("succeeded");
      await page.getByLabel("How you know").fill("it is in the CRM");
      await page.getByLabel("Result (JSON, optional)").fill("not json");
      await page.getByRole("button", { name: "Record outcome" }).click();
      expect(await page.locator("main").innerText()).toContain("Result: is not JSON");
      await page.goBack();
      await page.locator("#steps summary", { hasText: "Resolve" }).first().click();
      await page.getByLabel("What happened").selectOption("succeeded");
      await page.getByLabel("How you know").fill("it is in the CRM");
      await page.getByLabel("Result (JSON, optional)").fill('{"id": "c-9"}');
      await page.getByRole("button", { name: "Record outcome" }).click();
      expect(await said(page)).toBe("Step 0 is now succeeded, as you reported.");
    });
    expect((await lastRecord("succeeded")).detail).toBe("resolved by operator: it is in the CRM");
    const plan = (await server.api("auditor", "GET", `/v1/runs/${run}/plan`)).body;
    expect(plan.actions[0]).toMatchObject({ kind: "compensate", args: { id: "c-9" } });
  });

  it("rolls back after asking back, and shows how it goes until it is done", async () => {
    await succeed("crm.create", { name: "Ann" }, { id: "c-1" });
    await succeed("crm.create", { name: "Bob" }, { id: "stuck" });
    await succeed("pay.refund", { amount: 5 }, { id: "p-1" });
    await using("operator", async (page, { open }) => {
      await open(`/runs/${run}`);
      await page.getByLabel("Approve 1 undo that needs approval").check();
      await page.locator("#rollback summary", { hasText: "More" }).click();
      await page.getByLabel("Attempts per step").fill("1");
      await page.getByRole("button", { name: "Roll back" }).click();
      verifies("beyond.first.rollback-dialog");
      const told = await page.getByRole("dialog").innerText();
      expect(told).toContain("Undone now, newest first: step 1 (crm.create), step 0 (crm.create).");
      expect(told).toContain("Waits for approval, unless you approve it here: step 2 (pay.refund).");
      expect(told).toContain("Side effects that remain: a welcome mail was sent.");
      await agree(page, "Roll back");
      await page.locator(".job .mark", { hasText: "done, incomplete" }).waitFor();
      const job = await page.locator(".job").innerText();
      expect(job).toMatch(/undone\s+steps 2, 0/);
      expect(job).toMatch(/undo failed\s+step 1/);
    });
  });

  it("rolls back without a script once the box is ticked", async () => {
    await succeed("crm.create", { name: "Ann" }, { id: "c-1" });
    await using(
      "operator",
      async (page, { open }) => {
        await open(`/runs/${run}`);
        await page.getByRole("button", { name: "Roll back" }).click();
        expect(await page.locator(".job").count()).toBe(0);
        await page.getByLabel(/Undo 1 step of this run now/).check();
        await page.getByRole("button", { name: "Roll back" }).click();
        await page.locator(".job").waitFor();
      },
      false,
    );
  });

  it(`replays with one change ${verifies("ops.replay.console", "core.console.run-replay")}`, async () => {
    await succeed("pay.refund", { amount: 80 }, { id: "p-2" });
    await server.app.capture!.drain(60_000);
    await using("operator", async (page, { open }) => {
      await open(`/runs/${run}`);
      await page.getByLabel("Change in").selectOption("step:0");
      await page.getByLabel("Path").fill("$args.amount");
      await page.getByLabel("New value (JSON)").fill("900");
      await page.getByRole("button", { name: "Replay" }).click();
      await page.getByText("1 difference").first().waitFor();
      const text = (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");
      expect(text).toContain("1 difference");
      expect(text).toContain("refunds over 500 need a person");
      expect(text).toMatch(/As recorded fully reversible/);
    });
  });

  it(`has no Replay form while capture is off ${verifies("core.console.run-replay")}`, async () => {
    const plain = await consoleServer();
    await plain.api("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read"] });
    await plain.api("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "x" });
    const other = await Browsing.at(plain.url);
    const { page, open } = await other.as("operator");
    await open("/runs/r");
    expect(await page.locator("#steps").innerText()).toContain("crm.get");
    expect(await page.locator("#replay").count()).toBe(0);
    await open("/policy");
    expect(await page.locator("main").innerText()).toContain("Capture is off");
    await other.close();
    await plain.close();
  });
});

describe("policy and tools", () => {
  const EDITED = `version: 1
rules:
  - id: big-refunds
    match: {tool: pay.refund}
    when: [{path: $args.amount, op: gt, value: 50}]
    action: deny
    reason: no refunds over 50
tests:
  - {name: small passes, input: {tool: pay.refund, args: {amount: 20}}, expect: allow}
  - {name: fails on purpose, input: {tool: pay.refund, args: {amount: 20}}, expect: deny}
`;

  it(`checks a policy, runs its tests, compares, and simulates ${verifies("core.console.policy-validate", "core.console.policy-simulate", "ops.simulate.console")}`, async () => {
    await succeed("pay.refund", { amount: 80 }, { id: "p-3" });
    await server.app.capture!.drain(60_000);
    await using("operator", async (page, { open }) => {
      await open("/policy");
      await page.getByLabel("Policy (YAML)").fill("version: 1\nrules:\n  - {id: x, action: maybe}\n");
      await page.getByRole("button", { name: "Validate and run its tests" }).click();
      expect(await said(page)).toMatch(/does not load\. 1 problem:\s+policy:3/);
      await page.getByLabel("Policy (YAML)").fill(EDITED);
      await page.getByRole("button", { name: "Validate and run its tests" }).click();
      expect(await said(page)).toContain("1 test of 2 failed");
      expect(await page.locator(".tests").innerText()).toMatch(
        /FAIL fails on purpose expected deny, got allow/,
      );
      expect(await page.locator(".diff .added").allInnerTexts()).toContain("+     action: deny");
      await page.getByRole("button", { name: "Simulate the last 7 days" }).click();
      expect(await page.locator("#simulation").innerText()).toMatch(/1 newly blocked/);
      expect(await page.getByLabel("Policy (YAML)").inputValue()).toBe(EDITED);
    });
  });

  it("publishes a policy version, which an admin activates", async () => {
    const yaml = EDITED.replace(/ {2}- \{name: fails.*\n/, "").replace(
      "tests:",
      "retention: {default_days: 30}\ntests:",
    );
    await using("operator", async (page, { open }) => {
      await open("/policy");
      await page.getByLabel("Policy (YAML)").fill(yaml);
      await page.getByLabel("Note for the draft").fill("stricter refunds");
      await page.getByRole("button", { name: "Publish as draft" }).click();
      expect(await said(page)).toContain("Version 1 is published as a draft; 1 test passed.");
    });
    await using("admin", async (page, { open }) => {
      await open("/policy");
      await page.getByRole("button", { name: "Activate" }).click();
      await agree(page, "Activate");
      expect(await said(page)).toBe("Version 1 is active.");
      expect(await page.locator("#in-force").innerText()).toContain("no refunds over 50");
    });
  });

  it("publishes a manifest, approves and deprecates it", async () => {
    await using("operator", async (page, { open }) => {
      await open("/tools");
      await page.getByText("Publish a manifest").click();
      await page
        .getByLabel("Manifest (YAML)")
        .fill("- {tool: new.tool, effect: read, permission: new.read}\n");
      await page.getByRole("button", { name: "Publish as draft" }).click();
      expect(await said(page)).toContain("Draft 1 of new.tool is published");
    });
    await using("admin", async (page, { open }) => {
      await open("/tools#registry");
      await page.locator("#registry").getByRole("button", { name: "Approve" }).click();
      expect(await said(page)).toBe("Version 1 of new.tool is now approved.");
      await page.getByRole("button", { name: "Deprecate" }).click();
      expect(await said(page)).toBe("Version 1 of new.tool is now deprecated.");
    });
  });

  it("previews a call", async () => {
    await using("auditor", async (page, { open }) => {
      await open("/impact");
      await page.getByLabel("Tool").fill("mail.send");
      await page.getByLabel("Arguments (JSON)").fill('{"to": "x@example.com"}');
      await page.getByRole("button", { name: "Preview" }).click();
      expect(await page.locator(".impact").innerText()).toContain("irreversible effect: it cannot be undone");
    });
  });
});

describe("evidence", () => {
  it(`blocks all new calls and resumes, under a red banner ${verifies("core.console.evidence-halt", "core.console.halt-banner")}`, async () => {
    await using("admin", async (page, { open }) => {
      await open("/evidence");
      await page.getByLabel("Reason").fill("an agent runs wild");
      await page.getByRole("button", { name: "Block all new calls" }).click();
      await agree(page, "Block new calls");
      expect(await said(page)).toBe("All new calls are now blocked.");
      for (const path of [
        "/runs",
        "/runs/no-such-run",
        "/approvals",
        "/approvals/decided",
        "/alerts",
        "/tools",
        "/tools/crm.get",
        "/policy",
        "/impact",
        "/evidence",
        "/settings",
        "/nowhere",
        "",
      ]) {
        await open(path);
        const banner = page.getByRole("region", { name: "Halted" });
        expect(await banner.innerText()).toContain("an agent runs wild");
        expect(
          await page.evaluate('getComputedStyle(document.querySelector(".halted")).backgroundColor'),
        ).toBe("rgb(168, 30, 22)");
      }
      // Open incidents come before the alerts.
      const alerts = page.locator("main .items").last().locator("li").filter({ hasNotText: "incident" });
      expect(await alerts.first().innerText()).toContain("critical");
      expect((await ask("crm.get", {})).reasons).toEqual(["kill switch: an agent runs wild"]);
      await open("/evidence");
      await page.getByText("Block more").click();
      await page.getByLabel("Reason").fill("and no mail");
      await page.getByText("Limit the scope").click();
      await page.getByLabel("Tool").first().fill("mail.*");
      await page.getByRole("button", { name: "Block all new calls" }).click();
      await agree(page, "Block new calls");
      await page.locator("#halts tr", { hasText: "mail.*" }).getByRole("button", { name: "Resume" }).click();
      expect(await said(page)).toBe("1 halt was lifted.");
      await page.getByRole("button", { name: "Resume everything" }).click();
      expect(await page.getByRole("region", { name: "Halted" }).count()).toBe(0);
      expect((await ask("crm.get", {})).decision).toBe("allow");
    });
  });

  it(`halts from every page in one dialog, and lifts from the banner ${verifies("beyond.first.halt-header", "beyond.first.halt-banner")}`, async () => {
    await using("admin", async (page, { open }) => {
      await open("/tools");
      await page.getByRole("banner").getByRole("link", { name: "Halt" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Reason").fill("mails go astray");
      await dialog.getByLabel("Tool").fill("mail.*");
      await dialog.getByRole("button", { name: "Halt new calls" }).click();
      expect(await said(page)).toBe("Now blocked: tool mail.*.");
      await open("/settings");
      const banner = page.getByRole("region", { name: "Halted" });
      expect(await banner.innerText()).toBe("Halted: calls to mail.* are blocked");
      await banner.getByText("Halted: calls to mail.* are blocked").click();
      expect(await banner.innerText()).toMatch(
        /tool mail\.\*\.\s+mails go astray\s+by admin, since \d.*just now/s,
      );
      await banner.getByRole("button", { name: "Lift" }).click();
      expect(await said(page)).toBe("1 halt was lifted.");
      expect(await banner.count()).toBe(0);
    });
    await using("operator", async (page, { open }) => {
      await open("/tools");
      expect(await page.getByRole("link", { name: "Halt" }).count()).toBe(0);
    });
  });

  it(`contains an agent: says what that means, asks, and tells what became of it ${verifies("beyond.contain.console", "beyond.contain.linked")}`, async () => {
    const wild = `${run}-wild`;
    await server.api("rogue", "POST", "/v1/runs", { run_id: wild, permissions: ["crm.write", "mail.send"] });
    for (const [n, tool] of ["crm.create", "mail.send"].entries()) {
      await server.api("rogue", "POST", `/v1/runs/${wild}/intents`, { tool, args: {}, reason: "r" });
      const done = { status: "succeeded", result: { id: "c1" } };
      await server.api("rogue", "POST", `/v1/runs/${wild}/steps/${n}/outcome`, done);
    }
    await using("operator", async (page, { open }) => {
      await open(`/runs/${wild}`);
      expect(await page.getByRole("link", { name: "Contain this agent" }).count()).toBe(0);
    });
    await using("admin", async (page, { open }) => {
      await open("/evidence");
      expect(await page.getByRole("link", { name: "Contain an agent" }).count()).toBe(1);
      await open(`/runs/${wild}`);
      await page.getByRole("link", { name: "Contain this agent" }).click();
      expect(await page.getByLabel("Actor").inputValue()).toBe("rogue");
      await page.getByLabel("Reason").fill("<b>it went mad</b>");
      await page.getByRole("button", { name: "Preview" }).click();
      await page.getByRole("button", { name: "Contain 1 actor" }).waitFor();
      const told = await page.locator("main").innerText();
      expect(told).toContain("1 step to undo, 1 left");
      expect(told).toMatch(/step 0 crm\.create will be undone/);
      expect(told).toMatch(/step 1 mail\.send not undone/);
      await page.getByRole("button", { name: "Contain 1 actor" }).click();
      await agree(page, "Contain");
      await page.waitForURL(/\/console\/contain\/ctn_/);
      await page.getByText("contained, incomplete").waitFor();
      const report = await page.locator("main").innerText();
      expect(report).toContain("<b>it went mad</b>");
      expect(report).toContain("1 step undone, 1 left");
      const path = new URL(page.url()).pathname;
      await open(`/runs/${wild}`);
      expect(await page.locator("#run a", { hasText: "report" }).getAttribute("href")).toBe(path);
      await open("/alerts");
      const alerted = page.locator("#containments tr", { hasText: "rogue" });
      expect(await alerted.getByRole("link", { name: "Report" }).getAttribute("href")).toBe(path);
      await open("/evidence");
      const halted = page.locator("#halts tr", { hasText: "rogue" });
      expect(await halted.getByRole("link", { name: "Containment report" }).getAttribute("href")).toBe(path);
      const listed = page.locator("#containments tr", { hasText: "rogue" });
      await listed.getByRole("link", { name: "Report" }).click();
      await page.waitForURL((url) => url.pathname === path);
      await open("/evidence");
      await page.locator("#halts tr", { hasText: "rogue" }).getByRole("button", { name: "Resume" }).click();
      // A page that is closed while it is still being loaded may never be closed.
      expect(await said(page)).toBe("1 halt was lifted.");
    });
    expect((await server.api("rogue", "GET", "/v1/runs")).status).toBe(401);
  });

  it("verifies the ledger, publishes an anchor, and finds a record", async () => {
    await succeed("crm.get", {}, {});
    await using("admin", async (page, { open }) => {
      await open("/evidence");
      await page.getByRole("button", { name: "Verify now" }).click();
      expect(await said(page)).toMatch(/The ledger is sound: [\d,]+ records verified/);
      expect(await page.locator("#health").innerText()).toContain("by admin");
      if (await page.getByRole("button", { name: "Publish an anchor" }).isVisible()) {
        await page.getByRole("button", { name: "Publish an anchor" }).click();
        expect(await said(page)).toMatch(/was published to 1 sink/);
      }
      await page.getByLabel("Event").selectOption("halted");
      await page.locator("#ledger").getByRole("button", { name: "Search" }).click();
      await page.waitForURL(/event=halted/);
      expect(await page.locator("#records .mark").allInnerTexts()).toContain("halted");
      expect(await page.locator("#records").innerText()).not.toContain("succeeded");
    });
  });
});

describe("settings", () => {
  it(`sends a test message ${verifies("core.console.settings-test", "ops.notify.test-message-console", "ops.channel.console-list")}`, async () => {
    hook.bodies.length = 0;
    await using("admin", async (page, { open }) => {
      await open("/settings");
      await page.getByRole("button", { name: "Send test", exact: true }).click();
      expect(await page.locator("#channels .notice").innerText()).toMatch(/delivered hook/);
    });
    expect(hook.bodies.some((body) => body.includes('"test"'))).toBe(true);
  });

  it("places and releases a hold", async () => {
    await using("admin", async (page, { open }) => {
      await open("/settings");
      await page.getByText("Place a hold").click();
      await page.getByLabel("Run", { exact: true }).fill(run);
      await page.getByLabel("Reason").fill("a lawsuit");
      await page.getByRole("button", { name: "Place the hold" }).click();
      expect(await said(page)).toBe("The hold is active.");
      expect(await page.locator("#holds tbody").innerText()).toContain("a lawsuit");
      await page.getByRole("button", { name: "Release" }).click();
      await agree(page, "Release");
      expect(await said(page)).toContain("The hold is released");
    });
  });

  it("shows what retention would delete, and deletes it after a second confirmation", async () => {
    await succeed("crm.get", {}, {});
    env.forward(40 * 86_400_000);
    browsing.forget();
    await using("auditor", async (page, { open }) => {
      await open("/settings");
      await page.getByRole("button", { name: "Dry run" }).click();
      expect(await page.locator("#retention .notice").innerText()).toMatch(
        /Dry run: \d+ runs are due, 0 held/,
      );
    });
    expect((await server.api("auditor", "GET", `/v1/runs/${run}`)).status).toBe(200);
    await using("admin", async (page, { open }) => {
      await open("/settings");
      await page.getByRole("button", { name: "Apply" }).click();
      await agree(page, "Delete");
      expect(await page.locator("#retention .notice").innerText()).toMatch(/Deleted \d+ runs?/);
      await open(`/runs/${run}`);
      const text = await page.locator("main").innerText();
      expect(text).toContain("Retention deleted this run's working data");
      expect(text).toContain("working data deleted");
    });
    expect((await server.api("auditor", "GET", `/v1/runs/${run}`)).status).toBe(404);
  });

  it(`makes, changes, disables and deletes a key, and shows its value once ${verifies("core.console.settings-keys")}`, async () => {
    await using("admin", async (page, { open }) => {
      await open("/settings");
      await page.getByText("Create a key").click();
      const form = page.locator('form[action="/console/settings/keys#keys"]');
      await form.getByLabel("Name").fill("new-bot");
      await form.getByLabel("agent", { exact: true }).check();
      await form.getByLabel("Can request").fill("crm.read, crm.*");
      await form.getByRole("button", { name: "Create key" }).click();
      const key = await page.locator(".new-key code").innerText();
      expect((await server.api(key, "POST", "/v1/runs", { permissions: ["crm.read"] })).status).toBe(201);
      await open("/settings");
      expect(await page.content()).not.toContain(key);
      const row = page.locator("#keys tr", { hasText: "new-bot" });
      await row.getByRole("button", { name: "Disable" }).click();
      expect((await server.api(key, "GET", "/v1/runs")).status).toBe(401);
      await row.getByRole("button", { name: "Enable" }).click();
      await row.getByText("Edit").click();
      await row.getByLabel("Can request").fill("mail.send");
      await row.getByRole("button", { name: "Save" }).click();
      expect((await server.api(key, "POST", "/v1/runs", { permissions: ["crm.read"] })).status).toBe(403);
      await row.getByText("Edit").click();
      await row.getByRole("button", { name: "Delete" }).click();
      await agree(page, "Delete");
      expect(await said(page)).toBe("The key of new-bot is deleted.");
    });
    expect((await lastRecord("key_deleted")).actor).toBe("admin");
  });
});
