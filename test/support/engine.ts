/** An engine on the memory store with frozen time, for tests of decisions. */

import type { Core, Listeners } from "../../src/engine/core.ts";
import { silentListeners } from "../../src/engine/core.ts";
import { intentUnit } from "../../src/engine/intent.ts";
import { newRun, type OpenRunInput, openRunUnit } from "../../src/engine/open-run.ts";
import { type OutcomeInput, outcomeUnit } from "../../src/engine/outcome.ts";
import type { Json } from "../../src/kernel/json.ts";
import { SilenceWatch } from "../../src/kernel/silence.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { readManifests } from "../../src/model/manifest/load.ts";
import { compilePolicy } from "../../src/model/policy/compile.ts";
import { loadPolicy } from "../../src/model/policy/load.ts";
import type { Principal, Role } from "../../src/model/roles.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { fakeEnv } from "./env.ts";

export function principal(name: string, ...roles: Role[]): Principal {
  return {
    id: `key:${name}`,
    name,
    roles: roles.length === 0 ? ["agent"] : roles,
    groups: [],
    tenant: null,
    max_permissions: ["*"],
    allow_observe: true,
  };
}

export interface EngineOptions {
  manifests: string;
  policy?: string | undefined;
  now?: number | undefined;
  environment?: string | null | undefined;
  listeners?: Partial<Listeners> | undefined;
}

export function testEngine(options: EngineOptions) {
  const store = new MemoryStore();
  const env = fakeEnv({ now: options.now ?? Date.parse("2026-06-15T12:00:00Z"), seed: 1 });
  let rules = {
    manifests: readManifests([{ file: "manifests.yaml", text: options.manifests }]),
    policy: compilePolicy(loadPolicy(options.policy ?? "version: 1", "policy.yaml")),
  };
  const kill: { reason: string | null } = { reason: null };
  const core: Core = {
    store,
    env,
    rules: () => rules,
    environment: options.environment ?? null,
    killSwitch: () => kill.reason,
    storeKey: "test",
    leases: new SilenceWatch(),
    redact: (text) => text,
    listeners: { ...silentListeners, ...options.listeners },
  };
  return {
    core,
    store,
    env,
    kill,
    usePolicy(text: string) {
      rules = { ...rules, policy: compilePolicy(loadPolicy(text, "policy.yaml")) };
    },
    async open(who: Principal, input: Partial<OpenRunInput> & { run_id: string }) {
      return store.transact(openRunUnit(newRun(core, who, { permissions: [], ...input })));
    },
    async intent(
      who: Principal,
      run_id: string,
      tool: string,
      args: Json,
      more: { depends_on?: number[]; reason?: string } = {},
    ) {
      const input = { tool, args, reason: more.reason ?? "because", depends_on: more.depends_on ?? [] };
      return (await store.transact(intentUnit(core, who, run_id, input))).decision;
    },
    async outcome(
      who: Principal,
      run_id: string,
      step: number,
      input: OutcomeInput = { status: "succeeded" },
    ) {
      return (await store.transact(outcomeUnit(core, who, run_id, step, input))).answer;
    },
    async trail(run_id?: string): Promise<LedgerRecord[]> {
      return (await store.records({ run_id, limit: 10_000 })).map((line) => JSON.parse(line) as LedgerRecord);
    },
  };
}
