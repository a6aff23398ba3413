/** An engine on the memory store with frozen time, for tests of decisions. */
import type { EngineCore, EngineListeners } from "../../src/govern/core.ts";
import { silentListeners } from "../../src/govern/core.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { type OutcomeInput, outcomeUnit } from "../../src/govern/decide/outcome.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import type { CallerPrincipal, PrincipalRole } from "../../src/govern/roles.ts";
import { newRun, type OpenRunInput, openRunUnit } from "../../src/govern/runs/open-run.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { fakeEnv } from "./env.ts";

export function principal(name: string, ...roles: PrincipalRole[]): CallerPrincipal {
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
  listeners?: Partial<EngineListeners> | undefined;
}

/** `given`: another store, for tests that use what every store has. */
export function testEngine(options: EngineOptions, given?: StateStore) {
  const store = (given ?? new MemoryStore()) as MemoryStore;
  const env = fakeEnv({ now: options.now ?? Date.parse("2026-06-15T12:00:00Z"), seed: 1 });
  let rules = {
    manifests: readManifests([{ file: "manifests.yaml", text: options.manifests }]),
    policy: compilePolicy(loadPolicy(options.policy ?? "version: 1", "policy.yaml")),
  };
  const kill: { reason: string | null } = { reason: null };
  const core: EngineCore = {
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
    async open(who: CallerPrincipal, input: Partial<OpenRunInput> & { run_id: string }) {
      return store.transact(openRunUnit(newRun(core, who, { permissions: [], ...input })));
    },
    async intent(
      who: CallerPrincipal,
      run_id: string,
      tool: string,
      args: JsonValue,
      more: { depends_on?: number[]; reason?: string } = {},
    ) {
      const input = { tool, args, reason: more.reason ?? "because", depends_on: more.depends_on ?? [] };
      return (await store.transact(intentUnit(core, who, run_id, input))).decision;
    },
    async outcome(
      who: CallerPrincipal,
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
