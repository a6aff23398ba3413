/** Deleting due runs: what happens between planning and deleting decides, and nothing of a deleted run stays. */
import { expect, it } from "vitest";
import { principal, testEngine } from "../../test/support/engine.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { acquireLease } from "../rollback/lease.ts";
import { type ArchiveRun, applyRetention } from "./apply.ts";
import { placeHoldUnit } from "./holds.ts";

const DAY_MS = 86_400_000;
const bot = principal("bot");

async function due() {
  const e = testEngine({ manifests: "- {tool: crm.get, effect: read, permission: crm.read}\n" });
  await e.open(bot, { run_id: "r", permissions: ["crm.read"] });
  await e.intent(bot, "r", "crm.get", {});
  await e.env.advance(40 * DAY_MS);
  const apply = (archive: ArchiveRun | null) =>
    applyRetention(e.core, {
      rules: { default_days: 30 },
      can_archive: archive !== null,
      by: "ops",
      dry_run: false,
      archive,
    });
  return { e, apply };
}

it("keeps a run that is held while it is being archived", async () => {
  const { e, apply } = await due();
  const report = await apply(async () => {
    const scope = { run_id: "r" };
    await e.store.transact(placeHoldUnit(e.core, "ops", { scope, reason: "a case at court" }));
    return "archive/r.json";
  });
  expect(report).toMatchObject({
    deleted: [],
    archived: [],
    kept: [{ run_id: "r", reason: expect.stringContaining("a case at court") }],
  });
  expect(await e.store.get("runs", "r")).toBeDefined();
});

it("keeps a run that is used while it is being archived", async () => {
  const { e, apply } = await due();
  const report = await apply(async () => {
    await e.intent(bot, "r", "crm.get", {});
    return "archive/r.json";
  });
  expect(report.kept).toEqual([{ run_id: "r", reason: "it was used in the meantime" }]);
});

it("leaves nothing of a deleted run but its records", async () => {
  const { e, apply } = await due();
  await acquireLease(e.core, "r");
  expect((await apply(null)).kept).toEqual([{ run_id: "r", reason: "a rollback of it is in progress" }]);
  await e.env.advance(SERVICE_LIMITS.lease_ms);
  expect((await apply(null)).deleted).toEqual(["r"]);
  for (const table of ["runs", "steps", "payloads", "run_tools", "leases"] as const)
    expect([table, await e.store.count(table)]).toEqual([table, 0]);
  expect((await e.trail("r")).map(({ event }) => event)).toEqual(["intended", "purged"]);
});
