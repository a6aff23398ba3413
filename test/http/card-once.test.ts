/** A card is made once while nothing on it changes: the list and the decision use the same card. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { buildingCard, cachedCardSummary } from "../../src/govern/cards/card-cache.ts";
import { runAtOnce } from "../../src/kernel/pausable-work.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = (reason: string) =>
  `version: 1\nrules: [{id: asked, match: {tool: crm.create}, action: require_approval, reason: ${reason}}]\n`;

it("is remembered with its hash, and made again once the rules or the request say something else", async () => {
  verifies("beyond.heavy.card-once");
  const s = await testServer({ policy: POLICY("look") });
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.write"] });
  const call = { tool: "crm.create", args: { id: 1 }, reason: "r" };
  const asked = await s.call("agent", "POST", "/v1/runs/r/intents", call);
  const id = /apr_[0-9a-f-]{36}/.exec(asked.text)![0];
  const { store, rules } = s.app.core;
  const [approval, run] = [(await store.get("approvals", id))!, (await store.get("runs", "r"))!];
  expect(cachedCardSummary(rules(), run, approval)).toBeUndefined();
  const { body: card } = await s.call("approver", "GET", `/v1/approvals/${id}/card`);
  expect(cachedCardSummary(rules(), run, approval)?.hash).toBe(card.card_hash);
  expect(cachedCardSummary(rules(), run, { ...approval, reason: "another" })).toBeUndefined();
  expect(cachedCardSummary(rules(), { ...run, reason: "another" }, approval)).toBeUndefined();
  const values = await store.get("approval_values", id);
  expect(runAtOnce(buildingCard(rules(), run, approval, values)).hash).toBe(card.card_hash);
  writeFileSync(
    join(s.folder, "manifests.yaml"),
    "- {tool: crm.create, effect: idempotent, permission: crm.write, card: {note: think twice, fields: [{label: which, path: $args.id}]}}\n",
  );
  expect((await s.call("admin", "POST", "/v1/reload", {})).status).toBe(200);
  expect(cachedCardSummary(rules(), run, approval)).toBeUndefined();
  const decide = (card_hash: string) =>
    s.call("approver", "POST", `/v1/approvals/${id}/approve`, { card_hash });
  expect((await decide(card.card_hash)).status).toBe(409);
  const { body: now } = await s.call("approver", "GET", `/v1/approvals/${id}/card`);
  expect((await decide(now.card_hash)).status).toBe(200);
});
