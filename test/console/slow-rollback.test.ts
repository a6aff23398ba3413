/** A rollback that takes its time: the run's page follows each undo without a reload, on a desktop and on a phone. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { nodeCommand } from "../support/commands.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
import { consoleServer } from "./support/server.ts";

it("shows the step being undone and the undos to go, as they change", async () => {
  verifies("beyond.polish.live-rollback");
  const gates = tempDir("gates");
  const letThrough = (id: number) => writeFileSync(join(gates, String(id)), "");
  // Each undo waits until its file is there.
  const compensator = nodeCommand(`
    import { existsSync } from "node:fs";
    let text = "";
    process.stdin.on("data", (part) => { text += part; }).on("end", () => {
      const gate = ${JSON.stringify(gates)} + "/" + JSON.parse(text).args.id;
      const timer = setInterval(() => { if (existsSync(gate)) { clearInterval(timer); process.exit(0); } }, 50);
    });`);
  const s = await consoleServer({
    config: `console: login\nrollback: {compensator_cmd: ${JSON.stringify(compensator)}}\n`,
  });
  onTestFinished(() => s.close());
  const agent = (path: string, body: object) => s.api("agent", "POST", `/v1/runs${path}`, body);
  await agent("", { run_id: "slow", permissions: ["crm.write"] });
  for (const id of [0, 1, 2]) {
    await agent("/slow/intents", { tool: "crm.create", args: { id }, reason: "r" });
    await agent(`/slow/steps/${id}/outcome`, { status: "succeeded", result: { id } });
  }

  const browsing = await Browsing.at(s.url);
  onTestFinished(() => browsing.close());
  const desk = await browsing.as("operator");
  const phone = await browsing.as("auditor", { phone: true, dark: true });
  for (const { open, page } of [desk, phone]) {
    await open("/runs/slow");
    await page.locator("body.connected").waitFor();
    await page.evaluate("window.loaded = 'once'");
  }
  await desk.page.getByRole("button", { name: "Roll back" }).click();
  await desk.page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await desk.page.locator("body.connected").waitFor();

  const status = phone.page.getByRole("status");
  for (const [step, to_go] of [
    [2, "3 undos to go"],
    [1, "2 undos to go"],
    [0, "1 undo to go"],
  ] as const) {
    for (const { page } of [desk, phone])
      await page
        .getByRole("status")
        .filter({ hasText: `Rolling back: step ${step}. ${to_go}` })
        .waitFor();
    if (step === 1) {
      expect(await scrollsSideways(phone.page)).toBe(false);
      expect(await inaccessible(phone.page)).toEqual([]);
    }
    letThrough(step);
  }
  for (const { page } of [desk, phone]) await page.locator(".job .mark", { hasText: /^done/ }).waitFor();
  expect(await status.filter({ hasText: "Rolling back" }).count()).toBe(0);
  expect(await phone.page.evaluate("window.loaded")).toBe("once");
  expect([desk.complaints, phone.complaints]).toEqual([[], []]);
});
