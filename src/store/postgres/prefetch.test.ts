/** How often a database is asked for what intents and outcomes read. */
import { expect, it } from "vitest";
import { principal, testEngine } from "../../../test/support/engine.ts";
import { outcomeUnit } from "../../govern/decide/outcome.ts";
import type { DocKey } from "../../govern/port/store.ts";
import { LruMap } from "../../kernel/lru.ts";
import { declaredNeeds, type PendingUnit } from "../batch.ts";
import { FetchedDocs, runUnits } from "./prefetch.ts";

const MANIFESTS = "- {tool: crm.get, effect: read, permission: crm.read}";
const bot = principal("bot");

/** The requested keys, in addition to those that outcomes declare. */
async function askedFor(e: ReturnType<typeof testEngine>): Promise<string[][]> {
  const units: PendingUnit[] = [0, 1].map((step) => ({
    unit: outcomeUnit(e.core, bot, "r", step, { status: "succeeded" }),
    outcome: undefined,
  }));
  const facts = new FetchedDocs();
  const asked: string[][] = [];
  const obtain = async (keys: readonly DocKey[]) => {
    asked.push(keys.map(([table]) => table));
    const docs = await Promise.all(keys.map(([table, key]) => e.store.get(table, key)));
    facts.add(
      keys,
      docs.map((doc) => (doc === undefined ? undefined : JSON.stringify(doc))),
    );
  };
  await obtain(declaredNeeds(units));
  await runUnits(units, undefined, facts, obtain);
  expect(units.map(({ outcome }) => outcome?.ok)).toEqual([true, true]);
  return asked.slice(1);
}

it("an outcome's tool and manifest are asked for together, and not at all where its step was accepted here", async () => {
  const e = testEngine({ manifests: MANIFESTS });
  await e.open(bot, { run_id: "r", permissions: ["crm.read"] });
  await e.intent(bot, "r", "crm.get", {});
  await e.intent(bot, "r", "crm.get", {});
  expect(await askedFor(e)).toEqual([["run_tools", "manifests", "run_tools", "manifests"]]);
  e.core.awaited = new LruMap(9);
  await e.intent(bot, "r", "crm.get", {});
  expect(await askedFor(e)).toEqual([]);
});
