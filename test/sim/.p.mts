import { openStore } from "/work/main/src/store/open.ts";
import { loadPlan } from "/work/main/src/rollback/load.ts";
import { testEngine, principal } from "/work/main/test/support/engine.ts";
import { TOOLS } from "/work/main/test/sim/rollback-fixture.ts";
import { newRun, openRunUnit } from "/work/main/src/engine/open-run.ts";
import { intentUnit } from "/work/main/src/engine/intent.ts";
import { outcomeUnit } from "/work/main/src/engine/outcome.ts";
import { mkdtempSync } from "node:fs";
const BOT = principal("bot");
for (const kind of ["files","sqlite"] as const) {
  const store = await openStore({ store: kind, data: mkdtempSync("/tmp/p10k-"), database_url: null, warn: () => {} });
  const core = { ...testEngine({ manifests: TOOLS }).core, store };
  for (const n of [1000, 10000]) {
    const run_id = `r${n}`;
    await store.transact(openRunUnit(newRun(core, BOT, { run_id, permissions: ["p"] })));
    for (let i = 0; i < n; i += 100) {
      const part = await Promise.all(Array.from({ length: 100 }, (_, j) => store.transact(intentUnit(core, BOT, run_id, { tool: (i+j) % 2 && i > 0 ? "db.fill" : "db.create", args: { name: "x" }, reason: "b", depends_on: [] }))));
      await Promise.all(part.map(({ decision }) => store.transact(outcomeUnit(core, BOT, run_id, (decision as {step:number}).step, { status: "succeeded", result: { id: 1 } }))));
    }
    await loadPlan(store, run_id);
    const t = performance.now(); let plan; for (let k = 0; k < 5; k++) plan = await loadPlan(store, run_id);
    console.log(kind, n, plan!.actions.length, ((performance.now() - t) / 5).toFixed(1), "ms");
  }
  await store.close();
}
process.exit(0);
