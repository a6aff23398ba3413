/**
 * The cost of following values: the fingerprints of a large result, an intent with a flow that follows values against
 * one without such a flow, with little and with much history, and what one full run keeps.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EngineCore, silentListeners } from "../src/govern/core.ts";
import { intentUnit } from "../src/govern/decide/intent.ts";
import { outcomeUnit } from "../src/govern/decide/outcome.ts";
import { newRun, openRunUnit } from "../src/govern/runs/open-run.ts";
import { systemEnv } from "../src/kernel/env.ts";
import type { JsonValue } from "../src/kernel/json/json.ts";
import { SilenceWatch } from "../src/kernel/silence-watch.ts";
import { openEmbedded } from "../src/library/open.ts";
import { readManifests } from "../src/rules/manifest/load.ts";
import { compilePolicy } from "../src/rules/policy/compile.ts";
import { loadPolicy } from "../src/rules/policy/load.ts";
import { findTraceValues } from "../src/rules/trace/find-values.ts";
import { fingerprintsOf } from "../src/rules/trace/fingerprint.ts";
import { MemoryStore } from "../src/store/memory/store.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row, ratio } from "./report.ts";

const MANIFESTS = `
- {tool: mail.read, effect: read, permission: p, risk: {source: mail}}
- {tool: mail.send, effect: irreversible, permission: p, risk: {sink: internet}}
`;
const FLOW = (more: string) =>
  `version: 1\nflows:\n  - {id: f, after: {source: web}, then: {sink: internet}, carries: true${more}}\n`;
const POLICIES = { without: "version: 1\n", run: FLOW(""), tenant: FLOW(", within: 24h") };
type PolicyName = keyof typeof POLICIES;
const INTENTS = 200;

/** Mail of this many characters: sentences with addresses, amounts and order numbers. */
function mailOf(chars: number, from: number): string {
  let text = "";
  for (let n = from; text.length < chars; n++)
    text += `Order A-${10_000 + n} for customer${n}@shop${n % 97}.example over EUR ${n}.50 leaves store ${n % 13} soon. `;
  return text.slice(0, chars);
}

interface Side {
  /** Milliseconds of the intents of one round. */
  round(): Promise<number>;
  close(): Promise<void>;
}

/** A service with one policy, whose run and tenant have read this much mail. */
async function sideOf(name: PolicyName, history: number): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), "svc-carries-"));
  const put = (file: string, text: string) => {
    writeFileSync(join(folder, file), text);
    return join(folder, file);
  };
  const svc = await openEmbedded({
    manifests: put("manifests.yaml", MANIFESTS),
    policy: put("policy.yaml", POLICIES[name]),
    data: join(folder, "data"),
  });
  const open = () => svc.run({ actor: "bot", permissions: ["p"] });
  const run = await open();
  for (let n = 0; n < history; n++) {
    const reader = n % 2 === 0 ? run : await open();
    const read = { tool: "mail.read", args: {}, reason: "read" };
    await reader.call(read, () => mailOf(10_000, 1_000 * n));
  }
  let n = 0;
  return {
    async round() {
      const began = systemEnv.elapsed();
      for (let i = 0; i < INTENTS; i++) {
        const args = {
          to: `ann${n++}@own.example`,
          subject: "Weekly report",
          body: "Here is what you asked me for.",
        };
        await run.intent({ tool: "mail.send", args, reason: "send" });
      }
      return systemEnv.elapsed() - began;
    },
    async close() {
      await svc.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The median of the intents with the flow against those without, in the same rounds. */
async function intentRow(name: PolicyName, history: number, rounds: number): Promise<Row> {
  const [plain, followed] = [await sideOf("without", history), await sideOf(name, history)];
  const seen = await alternate(rounds, { plain: plain.round, followed: followed.round });
  await Promise.all([plain.close(), followed.close()]);
  const span = name === "run" ? "within a run" : "between runs";
  return {
    suite: "carries",
    what: `an intent that follows values ${span}, after ${history} results of 10 kB`,
    value: ratio(seen.followed, seen.plain),
    goal: { at_most: 1.2 },
  };
}

function fingerprintRow(rounds: number): Row {
  const times: number[] = [];
  for (let round = 0; round < 10 * rounds; round++) {
    const result: JsonValue = { body: mailOf(100_000, round) };
    const began = process.cpuUsage();
    fingerprintsOf("salt", findTraceValues(result, "$result", { any_number: false, subdomains: "of" }));
    const { user, system } = process.cpuUsage(began);
    times.push((user + system) / 1_000);
  }
  return {
    suite: "carries",
    what: "CPU of the fingerprints of a result of 100 kB",
    value: median(times),
    unit: " ms",
    goal: { at_most: 5 },
  };
}

/** Bytes of the documents with a run's fingerprints, once it has as many as a policy follows by default. */
async function memoryRow(): Promise<Row> {
  const store = new MemoryStore();
  const rules = {
    manifests: readManifests([{ file: "m", text: MANIFESTS }]),
    policy: compilePolicy(loadPolicy(POLICIES.run, "policy")),
  };
  const core: EngineCore = {
    store,
    env: systemEnv,
    rules: () => rules,
    environment: null,
    killSwitch: () => null,
    storeKey: "bench",
    leases: new SilenceWatch(),
    redact: (text) => text,
    listeners: silentListeners,
  };
  const who = { id: "key:bot", name: "bot", roles: ["agent" as const], groups: [], tenant: null };
  const caller = { ...who, max_permissions: ["*"], allow_observe: false };
  await store.transact(openRunUnit(newRun(core, caller, { run_id: "r", permissions: ["p"] })));
  for (let n = 0; n < 15; n++) {
    const input = { tool: "mail.read", args: {}, reason: "read", depends_on: [] };
    const { decision } = await store.transact(intentUnit(core, caller, "r", input));
    const outcome = { status: "succeeded" as const, result: mailOf(10_000, 1_000 * n) };
    if (decision.decision !== "block")
      await store.transact(outcomeUnit(core, caller, "r", decision.step, outcome));
  }
  const docs = [...(await store.list("trace_marks", { owner: "r", limit: 1_000 }))].map(
    ({ doc }) => doc as object,
  );
  const bytes = Buffer.byteLength(JSON.stringify([await store.get("traces", "r"), ...docs]));
  const fingerprints = (await store.get("traces", "r"))?.foreign ?? 0;
  return {
    suite: "carries",
    what: `kept by a run with ${fingerprints.toLocaleString("en")} fingerprints`,
    value: bytes / 1_024,
    unit: " kB",
    goal: null,
  };
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const rows = [fingerprintRow(rounds), await memoryRow()];
  for (const name of ["run", "tenant"] as const)
    for (const history of [0, 20]) rows.push(await intentRow(name, history, rounds));
  return rows;
}
