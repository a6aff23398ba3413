/** The engine that every process of the fault run has: the real one, with one plain tool and one that needs a person. */
import { type EngineCore, silentListeners } from "../../src/govern/core.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import type { CallerPrincipal, PrincipalRole } from "../../src/govern/roles.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";
import { manifestSet } from "../../src/rules/manifest/set.ts";
import type { ToolEffect, ToolManifest } from "../../src/rules/manifest/types.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";

export const PLAIN = "crm.touch";
export const GUARDED = "payments.refund";
/** How long a request may wait. */
export const TTL_MS = 3_600_000;

export const AGENT = person("bot", "agent");

export function person(name: string, role: PrincipalRole): CallerPrincipal {
  return {
    id: `key:${name}`,
    name,
    roles: [role],
    groups: [],
    tenant: null,
    max_permissions: ["*"],
    allow_observe: true,
  };
}

const rules = {
  manifests: manifestSet([manifest(PLAIN, "idempotent"), manifest(GUARDED, "irreversible")]),
  policy: compilePolicy({
    version: 1,
    rules: [{ id: "refunds", match: { tool: "payments.*" }, action: "require_approval" }],
    approvals: { ttl: "1h", max_open_per_run: 100_000 },
  }),
};

/** `ahead` is asked at every read of the clock: how far this process's clock is ahead of the machine's. */
export function engineOn(store: StateStore, ahead: () => number = () => 0): EngineCore {
  return {
    store,
    env: { ...systemEnv, now: () => Date.now() + ahead() },
    rules: () => rules,
    environment: null,
    killSwitch: () => null,
    storeKey: "proof",
    leases: new SilenceWatch(),
    redact: (text) => text,
    listeners: silentListeners,
  };
}

function manifest(tool: string, effect: ToolEffect): ToolManifest {
  return {
    tool,
    version: "1",
    lifecycle: "approved",
    effect,
    permission: "p",
    owner: null,
    requires: [],
    idempotency: [],
    risk: { data_class: null, blast_radius: null },
    compensation: null,
    verification: null,
    audit: { redaction: [], retention_days: null, evidence_export: null },
  };
}
