/** One rollback, with a request, a denial, a failure and a second try, tells the same story on every store. */
import { describe, expect, it } from "vitest";
import { decideUnit } from "../../src/govern/approvals/decide-request.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit } from "../../src/govern/decide/outcome.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { beginCompensation, completeCompensation } from "../../src/rollback/backend/remote-worker.ts";
import { getJob, startJob } from "../../src/rollback/job.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { openStore, type StoreSettings } from "../../src/store/open.ts";
import { principal, testEngine } from "../support/engine.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";
import { OPERATOR, restless, TOOLS, World } from "./rollback-fixture.ts";

const BOT = principal("bot");

async function story(kind: StoreSettings["store"]): Promise<string[]> {
  const database = kind === "postgres" ? await freshDatabase() : null;
  const store = await openStore({
    store: kind,
    data: tempDir(),
    database_url: database?.url ?? null,
    warn: () => {},
  });
  const engine = testEngine({ manifests: TOOLS });
  const core = { ...engine.core, store, env: restless(engine.env, []) };
  const world = new World();
  const told: string[] = [];
  const tell = (value: unknown): number => told.push(JSON.stringify(value));
  const options = { actor: "olga", compensator: world.compensator, reader: world.reader, retries: 2 };

  await store.transact(openRunUnit(newRun(core, BOT, { run_id: "r1", permissions: ["p"] })));
  for (const [n, tool] of [
    "db.create",
    "db.fill",
    "crm.add",
    "pay.charge",
    "db.peek",
    "db.create",
  ].entries()) {
    await store.transact(
      intentUnit(core, BOT, "r1", { tool, args: { name: "x" }, reason: "why", depends_on: [] }),
    );
    await store.transact(outcomeUnit(core, BOT, "r1", n, { status: "succeeded", result: { id: n } }));
  }
  tell(await beginCompensation(core, OPERATOR, "r1", 5));
  tell(await executeRollback(core, "r1", options).catch((error: Error) => error.message));
  tell(await completeCompensation(core, OPERATOR, "r1", 5, { status: "failed", error: "no", attempts: 2 }));
  world.fails = ({ step }) => (step === 1 ? "not today" : undefined);
  tell(await executeRollback(core, "r1", options));
  world.fails = () => undefined;
  const [request] = await store.list("approvals", { owner: "r1", tag: "pending", limit: 10 });
  await store.transact(
    decideUnit(core, principal("ann", "approver"), request!.doc.id, { decision: "approve", note: null }, []),
  );
  const job = await startJob(core, "r1", { by: "olga" }, { compensator: world.compensator, reader: null });
  tell((await job.done)?.report);
  tell((await getJob(store, "r1")).state);
  tell(await store.get("runs", "r1"));
  for (const line of await store.records({ run_id: "r1", limit: 1_000 })) told.push(line);
  await store.close();
  await database?.drop();
  return told;
}

describe("a rollback", () => {
  it("is the same on every store", async () => {
    const memory = await story("memory");
    expect(memory.join("\n")).toMatch(/"compensated":\[5,2\].*[\s\S]*"compensated":\[3,1,0\]/);
    for (const kind of ["files", "sqlite", "postgres"] as const)
      expect(await story(kind), kind).toEqual(memory);
  });
});
