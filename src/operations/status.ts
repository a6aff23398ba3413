/** Status summary of the service. */

import * as z from "zod";
import {
  APPROVAL_STATUSES,
  type ApprovalStatus,
  approvalTags,
  haltView,
} from "../govern/approvals/approval.ts";
import { PROBE_KEY, type ProbeState } from "../govern/port/docs.ts";
import { PROBE_ACTOR } from "../govern/roles.ts";
import { messageOf } from "../kernel/errors.ts";
import { nullableSchema } from "../rules/nullable-schema.ts";
import { countVisibleRecords, unconfinedStore } from "../store/tenant-store.ts";
import { announceRecords, type ServiceApp } from "./app.ts";
import { activeHalts } from "./halts.ts";
import type { CoreHolder } from "./ledger-reader.ts";
import { defineOperation } from "./pipeline/operation.ts";
import { noFields } from "./schemas.ts";

export async function approvalCounts({ core: { store } }: ServiceApp): Promise<Record<string, number>> {
  const count = async (status: ApprovalStatus) => {
    const counts = await Promise.all(approvalTags([status]).map((tag) => store.count("approvals", { tag })));
    return [status, counts.reduce((sum, n) => sum + n, 0)] as const;
  };
  return Object.fromEntries(await Promise.all(APPROVAL_STATUSES.map(count)));
}

/** Kind of the store: `files`, `sqlite`, `postgres` or `memory`. */
export function storeKind({ core }: CoreHolder): string {
  return core.store.kind;
}

/** Why the store cannot record decisions now; undefined if it can. */
export async function storeProblem({ core }: CoreHolder): Promise<string | undefined> {
  try {
    await core.store.ready();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Result of the last probe; undefined if there is none or the store cannot be read. */
export async function lastProbe({ core }: CoreHolder): Promise<ProbeState | undefined> {
  return (await core.store.get("meta", PROBE_KEY).catch(() => undefined)) as ProbeState | undefined;
}

/** Stores the result of a probe and records it. */
export async function recordProbe(
  { core }: Pick<ServiceApp, "core">,
  state: ProbeState,
  detail: string,
): Promise<void> {
  const record = await core.store.transact({
    run(tx) {
      tx.put("meta", PROBE_KEY, state);
      return tx.append({ event: "probed", actor: PROBE_ACTOR, ts_ms: core.env.now(), detail });
    },
  });
  announceRecords(core.listeners, [record]);
}

/** Lag of the replica; empty if there is none. */
export function replicaState({ core }: CoreHolder) {
  const { replica } = unconfinedStore(core.store);
  if (replica === undefined) return {};
  const { lag_ms, max_lag_ms } = replica;
  const in_use = lag_ms !== null && lag_ms <= max_lag_ms;
  return { replica: { lag_ms: lag_ms === null ? null : Math.round(lag_ms), max_lag_ms, in_use } };
}

/** This server's clock against the store's; empty if the store is this machine's alone. */
export function clockState({ clock }: Pick<ServiceApp, "clock">) {
  if (clock === null) return {};
  const { offset_ms, warning } = clock;
  return { clock: { offset_ms: Math.round(offset_ms), ...(warning === null ? {} : { warning }) } };
}

export const getStatus = defineOperation({
  id: "status",
  summary: "Read the status of the service",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    version: z.string(),
    store: z.string(),
    environment: nullableSchema(z.string()),
    uptime_ms: z.int(),
    records: z.int(),
    head: z.string(),
    runs: z.int(),
    approvals: z.record(z.string(), z.int()),
    halted: z.boolean(),
    halts: z.array(haltView),
    manifests: z.int(),
    policy: z.strictObject({ version: z.int(), hash: z.string(), rules: z.int() }),
    capture: z.boolean(),
    signing: z.boolean(),
    egress: z.boolean(),
    replica: z
      .strictObject({
        lag_ms: nullableSchema(z.int()),
        max_lag_ms: z.int(),
        in_use: z.boolean(),
      })
      .optional()
      .meta({ description: "the read replica; `lag_ms` is null while unknown" }),
  }),
  async run({ app }) {
    const { core, settings } = app;
    const { manifests, policy } = core.rules();
    const [head, records, runs, approvals, halts] = await Promise.all([
      core.store.head(),
      countVisibleRecords(core.store),
      core.store.count("runs"),
      approvalCounts(app),
      activeHalts(app),
    ]);
    return {
      version: app.version,
      store: core.store.kind,
      environment: core.environment,
      uptime_ms: Math.max(0, Math.round(core.env.now() - app.started_ms)),
      records,
      head: head.hash,
      runs,
      approvals,
      halted: halts.length > 0 || core.killSwitch() !== null,
      halts,
      manifests: manifests.all.length,
      policy: { version: policy.doc.version, hash: policy.hash, rules: policy.doc.rules?.length ?? 0 },
      capture: settings.capture.enabled,
      signing: settings.signing_key !== null,
      egress: app.egress.describe().in_force,
      ...replicaState(app),
    };
  },
});
