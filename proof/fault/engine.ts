/** The engine that every process of the fault run has: the real one, with one plain tool and one that needs a person. */

import { type Core, silentListeners } from "../../src/engine/core.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { SilenceWatch } from "../../src/kernel/silence.ts";
import { manifestSet } from "../../src/model/manifest/set.ts";
import type { Effect, Manifest } from "../../src/model/manifest/types.ts";
import { compilePolicy } from "../../src/model/policy/compile.ts";
import type { Principal, Role } from "../../src/model/roles.ts";
import type { Store } from "../../src/port/store.ts";

export const PLAIN = "crm.touch";
export const GUARDED = "payments.refund";
/** How long a request may wait. */
export const TTL_MS = 3_600_000;

export const AGENT = person("bot", "agent");

export function person(name: string, role: Role): Principal {
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

/** `ahead` is asked at every look at the clock: how far this process's clock is ahead of the machine's. */
export function engineOn(store: Store, ahead: () => number = () => 0): Core {
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

function manifest(tool: string, effect: Effect): Manifest {
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
