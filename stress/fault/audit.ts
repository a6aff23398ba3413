/**
 * Properties that must hold of a store after any fault, checked through a separate handle: the ledger is read and
 * checked by code that shares nothing with the writer's, and so are the documents.
 */
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { allRows, ledgerPages } from "../../src/govern/port/pages.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { openStore } from "../../src/store/open.ts";
import { firstBad, type Linked } from "../../test/support/first-bad.ts";
import { AGENT, engineOn, PLAIN } from "./engine.ts";
import type { Ack, Place } from "./protocol.ts";

export interface Findings {
  /** Answered, and not there. */
  lost: number;
  /** Two records at one place, or behind one. */
  forks: number;
  broken_chains: number;
  /** `allow` was answered and its record is missing. */
  bare_allows: number;
  /** State and ledger disagree: part of a unit is there and part is not. */
  half_units: number;
}

export const nothingWrong = (): Findings => ({
  lost: 0,
  forks: 0,
  broken_chains: 0,
  bare_allows: 0,
  half_units: 0,
});

export interface Audit {
  findings: Findings;
  records: Linked[];
}

let openings = 0;

/** Opens the place as the next start would, checks everything, and decides one call more. */
export async function audit(place: Place, acks: readonly Ack[]): Promise<Audit> {
  const store = await openStore({ ...place, warn: () => {} });
  try {
    const result = await auditStore(store, acks);
    await decideOneMore(store);
    return result;
  } finally {
    await store.close();
  }
}

export async function auditStore(store: StateStore, acks: readonly Ack[]): Promise<Audit> {
  const lines: string[] = [];
  for await (const page of ledgerPages(store)) for (const line of page) lines.push(line);
  const records = lines.map((line) => JSON.parse(line) as Linked);
  const findings = nothingWrong();
  const unique = (field: "seq" | "prev"): number =>
    records.length - new Set(records.map((record) => record[field])).size;
  findings.forks = Math.max(unique("seq"), unique("prev"));
  if (firstBad(lines) !== -1) findings.broken_chains = 1;
  for (const ack of acks) {
    const record = records[ack.seq];
    if (record?.hash === ack.hash && record["run_id"] === ack.run_id) continue;
    findings.lost++;
    if (ack.kind === "allow") findings.bare_allows++;
  }
  findings.half_units = await halves(store, records);
  return { findings, records };
}

/** Every accepted step is a document and a record, in the same state; every run counts its own. */
async function halves(store: StateStore, records: readonly Linked[]): Promise<number> {
  const expected = new Map<string, string>();
  const next = new Map<string, { steps: number; records: number }>();
  for (const { event, ...record } of records) {
    if (record["run_id"] === undefined) continue;
    const run_id = String(record["run_id"]);
    const counts = next.get(run_id) ?? { steps: 0, records: 0 };
    counts.records++;
    if (event === "intended") counts.steps++;
    next.set(run_id, counts);
    if (event === "intended" || event === "succeeded" || event === "failed")
      expected.set(`${run_id}/${record["step"]}`, event);
  }
  let wrong = 0;
  for await (const { doc } of allRows(store, "steps")) {
    const key = `${doc.run_id}/${doc.step}`;
    if (expected.get(key) !== doc.status) wrong++;
    expected.delete(key);
  }
  for await (const { doc } of allRows(store, "runs")) {
    const counts = next.get(doc.run_id) ?? { steps: 0, records: 0 };
    if (doc.next_step !== counts.steps || doc.next_run_seq !== counts.records) wrong++;
    next.delete(doc.run_id);
  }
  return wrong + expected.size + next.size;
}

async function decideOneMore(store: StateStore): Promise<void> {
  await store.ready();
  const core = engineOn(store);
  const run_id = `audit-${process.pid}-${openings++}`;
  await store.transact(openRunUnit(newRun(core, AGENT, { run_id, permissions: ["p"] })));
  const input = { tool: PLAIN, args: {}, reason: "the next start works", depends_on: [] };
  const { decision } = await store.transact(intentUnit(core, AGENT, run_id, input));
  if (decision.decision !== "allow") throw new Error(`after the fault: ${JSON.stringify(decision)}`);
}
