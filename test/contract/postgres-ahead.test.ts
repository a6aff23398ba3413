/**
 * Two servers that decide before they take the head. Another session holds it, so that both are between deciding
 * and checking. Then they continue in the order in which they came.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decideUnit } from "../../src/govern/approvals/decide-request.ts";
import type { EngineCore } from "../../src/govern/core.ts";
import { type IntentResult, intentUnit } from "../../src/govern/decide/intent.ts";
import { haltUnit } from "../../src/govern/halts/halts.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { batchStatsOf, openPostgresStore } from "../../src/store/postgres/store.ts";
import { principal, testEngine } from "../support/engine.ts";
import { freshDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { expectWhole } from "./chain.ts";
import { append, draft, put } from "./samples.ts";

const BOT = principal("bot");
const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- {tool: mail.send, effect: irreversible, permission: mail.send}
`;
const POLICY = `
version: 1
limits:
  - {id: once, match: {tool: crm.get}, per: global, max: 1, window: 1d}
rules:
  - {id: ask, match: {tool: mail.send}, action: require_approval, reason: a person}
`;

let url: string;
let holder: pg.Client;
let a: EngineCore;
let b: EngineCore;

beforeAll(async () => {
  ({ url } = await freshDatabase());
  const core = (store: StateStore, policy: string): EngineCore => ({
    ...testEngine({ manifests: MANIFESTS, policy }).core,
    store,
  });
  a = core(await openPostgresStore(url, () => {}), POLICY);
  b = core(await openPostgresStore(url, () => {}), POLICY);
  holder = new pg.Client(url);
  await holder.connect();
});
afterAll(async () => {
  await Promise.all([a.store.close(), b.store.close(), holder.end()]);
});

/** Each finds that the other has written since: from then on it decides ahead. */
async function beside(): Promise<void> {
  for (const { store } of [a, b, a, b]) await append(store);
}

const hold = () => holder.query("BEGIN; SELECT FROM svc_head FOR UPDATE");
const letGo = () => holder.query("COMMIT");
const queued = (count: number) =>
  until(async () => {
    const { rows } = await holder.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    );
    return rows[0].n === count;
  }, `${count} servers to wait for the head`);

/** Begins the work of each in turn, once the one before it has decided and waits; answers when all are done. */
async function between<T>(...works: (() => Promise<T>)[]): Promise<T[]> {
  await hold();
  const begun: Promise<T>[] = [];
  for (const work of works) {
    begun.push(work());
    await queued(begun.length);
  }
  await letGo();
  return Promise.all(begun);
}

async function open(core: EngineCore, run_id: string): Promise<void> {
  const permissions = ["crm.read", "mail.send"];
  await core.store.transact(openRunUnit(newRun(core, BOT, { run_id, permissions })));
}

const intent = (core: EngineCore, run_id: string, tool: string): Promise<IntentResult> =>
  core.store.transact(intentUnit(core, BOT, run_id, { tool, args: {}, reason: "r", depends_on: [] }));

const approve = (id: string) =>
  a.store.transact(decideUnit(a, principal("ann", "approver"), id, { decision: "approve", note: null }, []));

describe("a batch that was decided before it took the head", () => {
  it("is sealed where it comes to stand, and its documents name that place", async () => {
    verifies("beyond.beside.sealed", "beyond.beside.decided-ahead");
    await Promise.all([open(a, "s1"), open(b, "s2")]);
    await beside();
    const before = [batchStatsOf(a.store)!.ahead, batchStatsOf(b.store)!.ahead];
    const [first, second] = await between(
      () => intent(a, "s1", "mail.send"),
      () => intent(b, "s2", "mail.send"),
    );
    expect([batchStatsOf(a.store)!.ahead, batchStatsOf(b.store)!.ahead]).toEqual([
      before[0]! + 1,
      before[1]! + 1,
    ]);
    const chain = await expectWhole(a.store);
    for (const { records } of [first!, second!])
      for (const record of records) expect(chain[record.seq]).toEqual(JSON.parse(JSON.stringify(record)));
    await approve(first!.opened!.id);
    await beside();
    const [, used] = await between<unknown>(
      () => put(b.store, "meta", { somebody: 1 }),
      () => intent(a, "s1", "mail.send"),
    );
    const { records } = used as IntentResult;
    const step = await b.store.get("steps", (await b.store.list("steps", { owner: "s1", limit: 1 }))[0]!.key);
    expect(step!.intended_seq).toBe(records.at(-1)!.seq);
    expect((await b.store.head()).records).toBe(records.at(-1)!.seq + 1);
    await expectWhole(b.store);
  });

  it("is decided again where what it was decided on has changed: a limit is never over", async () => {
    verifies("beyond.beside.again", "beyond.beside.limits");
    await Promise.all([open(a, "l1"), open(b, "l2")]);
    await beside();
    const { again } = batchStatsOf(b.store)!;
    const answers = await between(
      () => intent(a, "l1", "crm.get"),
      () => intent(b, "l2", "crm.get"),
    );
    expect(answers.map(({ decision }) => decision.decision)).toEqual(["allow", "block"]);
    expect(batchStatsOf(b.store)!.again).toBe(again + 1);
  });

  it("is not decided under the head: the cost of rules and arguments is over when it is taken", async () => {
    verifies("beyond.beside.decided-ahead");
    await beside();
    let decided = 0;
    await hold();
    const writing = a.store.transact({ run: (tx) => void tx.append(draft({ reason: `${decided++}` })) });
    await queued(1);
    const before = decided;
    await letGo();
    await writing;
    expect([before, decided]).toEqual([1, 1]);
  });

  it("goes by what the batch before it left, unless another server has changed that since", async () => {
    verifies("beyond.beside.again", "beyond.beside.decided-ahead");
    await open(a, "k1");
    await beside();
    const rename = ({ store }: EngineCore, reason: string) =>
      store.transact({
        needs: [["runs", "k1"]],
        run: (tx) => {
          const run = tx.get("runs", "k1")!;
          tx.put("runs", "k1", { ...run, reason: `${run.reason ?? ""}${reason}` });
          tx.append(draft({ run_id: "k1" }));
        },
      });
    const cost = async (work: () => Promise<unknown>) => {
      const { fetched, again } = { ...batchStatsOf(a.store)! };
      await work();
      return [batchStatsOf(a.store)!.fetched - fetched, batchStatsOf(a.store)!.again - again];
    };
    expect(await cost(() => rename(a, "1")), "read ahead").toEqual([1, 0]);
    await append(b.store);
    expect(await cost(() => rename(a, "2")), "known").toEqual([0, 0]);
    await rename(b, "3");
    expect(await cost(() => rename(a, "4")), "known, and no longer so").toEqual([0, 1]);
    expect((await b.store.get("runs", "k1"))!.reason).toBe("1234");
    await append(b.store);
    expect(await cost(() => rename(a, "5")), "better read again for a while").toEqual([1, 0]);
    expect((await b.store.get("runs", "k1"))!.reason).toBe("12345");
  });

  it("uses an approval once, however many decided on it", async () => {
    verifies("beyond.beside.approvals");
    await open(a, "u1");
    const asked = await intent(a, "u1", "mail.send");
    await approve(asked.opened!.id);
    await beside();
    const answers = await between(
      () => intent(a, "u1", "mail.send"),
      () => intent(b, "u1", "mail.send"),
    );
    expect(answers.map(({ decision }) => decision.decision)).toEqual(["allow", "block"]);
  });

  it("allows nothing once a halt was answered, also where it was decided before the halt", async () => {
    verifies("beyond.beside.halts");
    await open(a, "h1");
    await beside();
    const halt = haltUnit(b, "boss", { reason: "stop" });
    const [, answer] = await between<unknown>(
      () => b.store.transact(halt),
      () => intent(a, "h1", "crm.get"),
    );
    expect((answer as IntentResult).decision).toMatchObject({ decision: "block" });
    expect(JSON.stringify((answer as IntentResult).decision)).toContain("kill switch: stop");
  });
});
