/** What the service is doing, at a glance. */
import * as z from "zod";
import { APPROVAL_STATUSES, type ApprovalStatus, everyTag } from "../../model/approval.ts";
import type { Store } from "../../port/store.ts";
import { shownRecords, wholeOf } from "../../store/confined.ts";
import type { App } from "../app.ts";
import { operation } from "../door/operation.ts";
import { activeHalts } from "./halts.ts";
import { haltView, noFields, nullable } from "./schemas.ts";

export async function approvalCounts({ core: { store } }: App): Promise<Record<string, number>> {
  const count = async (status: ApprovalStatus) => {
    const counts = await Promise.all(everyTag([status]).map((tag) => store.count("approvals", { tag })));
    return [status, counts.reduce((sum, n) => sum + n, 0)] as const;
  };
  return Object.fromEntries(await Promise.all(APPROVAL_STATUSES.map(count)));
}

/** How far the replica is behind; nothing where there is none. */
export function replicaState(store: Store) {
  const { replica } = wholeOf(store);
  if (replica === undefined) return {};
  const { lag_ms, max_lag_ms } = replica;
  const in_use = lag_ms !== null && lag_ms <= max_lag_ms;
  return { replica: { lag_ms: lag_ms === null ? null : Math.round(lag_ms), max_lag_ms, in_use } };
}

export const status = operation({
  id: "status",
  summary: "Status of the service",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    version: z.string(),
    store: z.string(),
    environment: nullable(z.string()),
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
        lag_ms: nullable(z.int()),
        max_lag_ms: z.int(),
        in_use: z.boolean(),
      })
      .optional()
      .meta({ description: "the replica that is read from; `lag_ms` is null while it is not known" }),
  }),
  async run({ app }) {
    const { core, settings } = app;
    const { manifests, policy } = core.rules();
    const [head, records, runs, approvals, halts] = await Promise.all([
      core.store.head(),
      shownRecords(core.store),
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
      ...replicaState(core.store),
    };
  },
});
