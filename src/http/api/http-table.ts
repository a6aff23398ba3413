/** The HTTP table: every operation, in the order of the reference. */
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { getActor } from "../../operations/actors/actor.ts";
import { listReportedAgents, reportAgents } from "../../operations/actors/machine-agents.ts";
import { listAlerts } from "../../operations/alerts.ts";
import {
  approveRequest,
  breakGlass,
  denyRequest,
  getApproval,
  getCard,
  listApprovals,
  preApprove,
  withdrawRequest,
} from "../../operations/approvals/approvals.ts";
import {
  createDelegation,
  listDelegations,
  revokeDelegation,
} from "../../operations/approvals/delegations.ts";
import { evaluateAccess, evaluateAccesses } from "../../operations/authzen/evaluate.ts";
import { getAccessRequest, requestAccess } from "../../operations/authzen/tasks.ts";
import {
  containAgent,
  containPreview,
  containStarted,
  getContain,
} from "../../operations/contain/contain.ts";
import { listDrills, startDrills } from "../../operations/drills/drills.ts";
import { publishAnchor } from "../../operations/evidence/anchors.ts";
import { bundleLedger, bundleRun, evidenceKey, verifyLedger } from "../../operations/evidence/bundles.ts";
import {
  ledgerCheckpoint,
  ledgerConsistency,
  ledgerInclusion,
} from "../../operations/evidence/checkpoints.ts";
import { exportRun } from "../../operations/evidence/export.ts";
import { oversightReport } from "../../operations/evidence/oversight.ts";
import { periodReport, runReport, runReportAsPdf } from "../../operations/evidence/reports.ts";
import { createGrant, listGrants, previewGrant, revokeGrant } from "../../operations/grants/grants.ts";
import { haltCalls, liftHalts, listHalts } from "../../operations/halts.ts";
import {
  addIncidentNote,
  assignIncident,
  closeIncident,
  getIncident,
  listIncidents,
} from "../../operations/incidents/incidents.ts";
import { changeKey, createKey, deleteKey, listKeys } from "../../operations/keys.ts";
import type { ServiceOperation } from "../../operations/pipeline/operation.ts";
import {
  approvePlan,
  denyPlan,
  getPlan,
  listPlans,
  proposePlan,
  withdrawPlan,
} from "../../operations/plans.ts";
import {
  addDevice,
  changeDevice,
  listDevices,
  removeDevice,
  testDevice,
} from "../../operations/push/devices.ts";
import { listConnectors } from "../../operations/registry/connectors.ts";
import { listHttpTools } from "../../operations/registry/http-tools.ts";
import {
  activatePolicy,
  approveManifest,
  deprecateManifest,
  publishManifest,
  publishPolicy,
  readRegistry,
  waitingPolicy,
} from "../../operations/registry/registry.ts";
import { reloadConfiguration } from "../../operations/reload.ts";
import { listHolds, placeHold, releaseHold } from "../../operations/retention/holds.ts";
import { getRetentionPlan, runRetention } from "../../operations/retention/retention.ts";
import {
  beginUndo,
  completeUndo,
  getRollback,
  getRollbackPlan,
  rollbackPlanned,
  rollbackStarted,
  startRollback,
} from "../../operations/rollback/rollback.ts";
import { listUndoDeadlines } from "../../operations/runs/horizon.ts";
import {
  previewIntent,
  reportStepOutcome,
  resolveOutcome,
  submitIntent,
} from "../../operations/runs/intents-and-outcomes.ts";
import { reconcileRun } from "../../operations/runs/reconcile.ts";
import { replayCapturedRun } from "../../operations/runs/replay.ts";
import { getRun, listRuns, openRun } from "../../operations/runs/runs.ts";
import { searchRecords, searchRuns } from "../../operations/runs/search.ts";
import { getLineage, giveRunTexts } from "../../operations/runs/values.ts";
import { openChallenge } from "../../operations/signing/challenges.ts";
import {
  addPasskey,
  confirmPasskey,
  listPasskeys,
  passkeyOptions,
  revokePasskey,
} from "../../operations/signing/passkeys.ts";
import { getSignatures } from "../../operations/signing/signatures.ts";
import { previewCallImpact } from "../../operations/simulate/impact.ts";
import { diffPolicy } from "../../operations/simulate/policy-diff.ts";
import { simulatePolicy } from "../../operations/simulate/simulate.ts";
import { speculateOnPlans } from "../../operations/simulate/speculate.ts";
import { getStatus } from "../../operations/status.ts";
import {
  connectUpstream,
  disconnectUpstream,
  listUpstreams,
  rotateTokens,
} from "../../operations/upstreams/upstreams.ts";
import { policyShape } from "../../registry/policies.ts";
import {
  type FieldBinding,
  flagField,
  type HeaderField,
  type HttpRow,
  httpRoute,
  integerField,
  textField,
} from "./http-row.ts";

const run = { params: { id: textField("run_id") } };
const step = {
  params: { id: textField("run_id"), n: integerField("step", "must be a step number") },
};
const planned = { params: { id: textField("plan_id") } };
const approval = { params: { id: textField("approval_id") } };
const passkey = { params: { id: textField("passkey_id") } };
const device = { params: { id: textField("device_id") } };
const incident = { params: { id: textField("incident_id") } };
const entry = {
  params: { index: integerField("index", "must be the index of a key entry") },
};

const RECORDS = "must be a whole number of records";
const limit = integerField("limit", `must be a whole number from 1 to ${SERVICE_LIMITS.page_max}`);
const page = [limit, textField("cursor")];
const texts = (...names: string[]): FieldBinding[] => names.map(textField);

const once: HeaderField = {
  header: "Idempotency-Key",
  field: "idempotency_key",
  about: "a retry with the same key gets the first answer again",
  schema: { type: "string", minLength: 1, maxLength: SERVICE_LIMITS.idempotency_key_chars },
  read: (text) => text,
  write: String,
};
/** Accepts the quotes of an ETag. */
const matching: HeaderField = {
  header: "If-Match",
  field: "fingerprint",
  about: "the fingerprint of the key entry to change",
  schema: { type: "string" },
  read: (text) => text?.replace(/^"(.*)"$/, "$1"),
  write: (value) => `"${value}"`,
};
const accepting: HeaderField = {
  header: "Accept",
  field: "format",
  about: "application/json for one object; JSON lines otherwise",
  read: (text) => (prefersJson(text) ? "json" : "ndjson"),
  write: (value) => (value === "json" ? "application/json" : "application/x-ndjson"),
};

export const HTTP_TABLE: readonly HttpRow[] = [
  httpRoute("POST /access/v1/evaluation", evaluateAccess, { headers: [once] }),
  httpRoute("POST /access/v1/evaluations", evaluateAccesses),
  httpRoute("POST /access/v1/requests", requestAccess, { status: 202 }),
  httpRoute("GET /access/v1/requests/{id}", getAccessRequest, { params: { id: textField("task_id") } }),
  httpRoute("POST /v1/runs", openRun, { status: 201 }),
  httpRoute("GET /v1/runs", listRuns, { query: page }),
  httpRoute("GET /v1/runs/{id}", getRun, run),
  httpRoute("POST /v1/runs/{id}/intents", submitIntent, { ...run, headers: [once] }),
  httpRoute("POST /v1/runs/{id}/intents/preview", previewIntent, run),
  httpRoute("POST /v1/runs/{id}/steps/{n}/outcome", reportStepOutcome, { ...step, headers: [once] }),
  httpRoute("GET /v1/runs/{id}/export", exportRun, { ...run, headers: [accepting] }),
  httpRoute("GET /v1/runs/{id}/report", runReport, run),
  httpRoute("GET /v1/runs/{id}/report.pdf", runReportAsPdf, run),
  httpRoute("GET /v1/runs/{id}/bundle", bundleRun, run),
  httpRoute("POST /v1/runs/{id}/steps/{n}/resolve", resolveOutcome, step),
  httpRoute("GET /v1/runs/{id}/plan", getRollbackPlan, {
    ...run,
    query: [flagField("children"), flagField("dependents")],
  }),
  httpRoute("POST /v1/runs/{id}/rollback", startRollback, {
    ...run,
    shape: rollbackPlanned,
    also: [
      {
        status: 202,
        about: "the job was started",
        shape: rollbackStarted,
        is: (answer) => "job" in answer,
      },
    ],
  }),
  httpRoute("GET /v1/runs/{id}/rollback", getRollback, run),
  httpRoute("POST /v1/runs/{id}/steps/{n}/compensation", beginUndo, step),
  httpRoute("POST /v1/runs/{id}/steps/{n}/compensation/outcome", completeUndo, step),
  httpRoute("GET /v1/approvals", listApprovals, { query: [...texts("status", "run_id"), ...page] }),
  httpRoute("GET /v1/approvals/{id}", getApproval, {
    ...approval,
    query: [integerField("wait", `must be whole seconds, at most ${SERVICE_LIMITS.approval_wait_s}`)],
  }),
  httpRoute("GET /v1/approvals/{id}/card", getCard, approval),
  httpRoute("GET /v1/approvals/{id}/signatures", getSignatures, approval),
  httpRoute("POST /v1/approvals/{id}/approve", approveRequest, approval),
  httpRoute("POST /v1/approvals/{id}/deny", denyRequest, approval),
  httpRoute("POST /v1/approvals/{id}/withdraw", withdrawRequest, approval),
  httpRoute("POST /v1/approvals/{id}/break-glass", breakGlass, approval),
  httpRoute("POST /v1/runs/{id}/approvals", preApprove, { ...run, status: 201 }),
  httpRoute("GET /v1/delegations", listDelegations, { query: page }),
  httpRoute("POST /v1/delegations", createDelegation, { status: 201 }),
  httpRoute("DELETE /v1/delegations/{id}", revokeDelegation, { params: { id: textField("delegation_id") } }),
  httpRoute("POST /v1/runs/{id}/given", giveRunTexts, run),
  httpRoute("GET /v1/agents", listReportedAgents),
  httpRoute("POST /v1/agents", reportAgents),
  httpRoute("GET /v1/runs/{id}/lineage", getLineage, run),
  httpRoute("POST /v1/runs/{id}/reconcile", reconcileRun, run),
  httpRoute("POST /v1/runs/{id}/plans", proposePlan, { ...run, status: 201 }),
  httpRoute("GET /v1/plans", listPlans, { query: [...texts("status", "run_id"), ...page] }),
  httpRoute("GET /v1/plans/{id}", getPlan, planned),
  httpRoute("POST /v1/plans/{id}/approve", approvePlan, planned),
  httpRoute("POST /v1/plans/{id}/deny", denyPlan, planned),
  httpRoute("POST /v1/plans/{id}/withdraw", withdrawPlan, planned),
  httpRoute("POST /v1/grants", createGrant, { status: 201 }),
  httpRoute("GET /v1/grants", listGrants, { query: page }),
  httpRoute("POST /v1/grants/preview", previewGrant),
  httpRoute("DELETE /v1/grants/{id}", revokeGrant, { params: { id: textField("grant_id") } }),
  httpRoute("GET /v1/search/runs", searchRuns, {
    query: [
      ...texts("actor", "tool", "tenant", "mode", "status", "event", "since", "until"),
      flagField("attention"),
      ...texts("q", "order"),
      ...page,
    ],
  }),
  httpRoute("GET /v1/search/records", searchRecords, {
    query: [...texts("run_id", "event", "actor", "tool", "since", "until", "q"), ...page],
  }),
  httpRoute("POST /v1/simulate", simulatePolicy),
  httpRoute("POST /v1/runs/{id}/replay", replayCapturedRun, run),
  httpRoute("GET /v1/impact", previewCallImpact, { query: texts("tool", "args", "actor") }),
  httpRoute("POST /v1/speculate", speculateOnPlans),
  httpRoute("POST /v1/policy/diff", diffPolicy),
  httpRoute("GET /v1/report", periodReport, { query: texts("since", "format") }),
  httpRoute("GET /v1/report/oversight", oversightReport, {
    query: [...texts("since", "format"), flagField("anonymous")],
  }),
  httpRoute("GET /v1/ledger/bundle", bundleLedger),
  httpRoute("GET /v1/ledger/checkpoint", ledgerCheckpoint, { query: [flagField("witnessed")] }),
  httpRoute("GET /v1/ledger/consistency", ledgerConsistency, {
    query: [integerField("from", RECORDS), integerField("to", RECORDS)],
  }),
  httpRoute("GET /v1/ledger/inclusion", ledgerInclusion, {
    query: [integerField("seq", "must be the number of a record"), integerField("size", RECORDS)],
  }),
  httpRoute("GET /v1/evidence/key", evidenceKey),
  httpRoute("GET /v1/ledger/verify", verifyLedger),
  httpRoute("POST /v1/anchor", publishAnchor),
  httpRoute("GET /v1/horizon", listUndoDeadlines, { query: [...texts("within"), ...page] }),
  httpRoute("GET /v1/alerts", listAlerts),
  httpRoute("GET /v1/status", getStatus),
  httpRoute("GET /v1/connectors", listConnectors),
  httpRoute("GET /v1/http-tools", listHttpTools),
  httpRoute("GET /v1/halts", listHalts),
  httpRoute("POST /v1/halt", haltCalls, { status: 201 }),
  httpRoute("POST /v1/resume", liftHalts),
  httpRoute("POST /v1/contain", containAgent, {
    shape: containPreview,
    also: [
      {
        status: 202,
        about: "the containment started or continues; the halt is active",
        shape: containStarted,
        is: (answer) => "job" in answer,
      },
    ],
  }),
  httpRoute("GET /v1/contain/{id}", getContain, { params: { id: textField("contain_id") } }),
  httpRoute("GET /v1/actors/{name}", getActor, { params: { name: textField("actor") } }),
  httpRoute("GET /v1/incidents", listIncidents, { query: [...texts("status"), ...page] }),
  httpRoute("GET /v1/incidents/{id}", getIncident, { ...incident, query: texts("format") }),
  httpRoute("POST /v1/incidents/{id}/notes", addIncidentNote, { ...incident, status: 201 }),
  httpRoute("POST /v1/incidents/{id}/assign", assignIncident, incident),
  httpRoute("POST /v1/incidents/{id}/close", closeIncident, incident),
  httpRoute("POST /v1/drills", startDrills, { status: 202 }),
  httpRoute("GET /v1/drills", listDrills),
  httpRoute("GET /v1/registry", readRegistry),
  httpRoute("POST /v1/registry/manifests", publishManifest, { status: 201 }),
  httpRoute("POST /v1/registry/manifests/{tool}/approve", approveManifest, {
    params: { tool: textField("tool") },
  }),
  httpRoute("POST /v1/registry/manifests/{tool}/deprecate", deprecateManifest, {
    params: { tool: textField("tool") },
  }),
  httpRoute("POST /v1/registry/policy", publishPolicy, { status: 201 }),
  httpRoute("POST /v1/registry/policy/{version}/activate", activatePolicy, {
    params: { version: textField("version") },
    shape: policyShape,
    also: [
      {
        status: 202,
        about: "the policy is looser in some place and waits until another admin activates it too",
        shape: waitingPolicy,
        is: (answer) => "waiting_for" in answer,
      },
    ],
  }),
  httpRoute("POST /v1/reload", reloadConfiguration),
  httpRoute("GET /v1/holds", listHolds, { query: [flagField("all"), ...page] }),
  httpRoute("POST /v1/holds", placeHold, { status: 201 }),
  httpRoute("DELETE /v1/holds/{id}", releaseHold, { params: { id: textField("hold_id") } }),
  httpRoute("GET /v1/retention/plan", getRetentionPlan, {
    query: [integerField("days", "must be a positive whole number of days"), ...page],
  }),
  httpRoute("POST /v1/retention/apply", runRetention),
  httpRoute("GET /v1/keys", listKeys),
  httpRoute("POST /v1/keys", createKey, { status: 201 }),
  httpRoute("PATCH /v1/keys/{index}", changeKey, { ...entry, headers: [matching] }),
  httpRoute("DELETE /v1/keys/{index}", deleteKey, { ...entry, headers: [matching] }),
  httpRoute("POST /v1/passkeys/options", passkeyOptions),
  httpRoute("POST /v1/passkeys", addPasskey, { status: 201 }),
  httpRoute("GET /v1/passkeys", listPasskeys),
  httpRoute("POST /v1/passkeys/{id}/confirm", confirmPasskey, passkey),
  httpRoute("DELETE /v1/passkeys/{id}", revokePasskey, passkey),
  httpRoute("POST /v1/challenges", openChallenge),
  httpRoute("GET /v1/upstreams", listUpstreams),
  httpRoute("POST /v1/upstreams/{name}/link", connectUpstream, { params: { name: textField("upstream") } }),
  httpRoute("DELETE /v1/upstreams/connections/{id}", disconnectUpstream, {
    params: { id: textField("connection_id") },
  }),
  httpRoute("POST /v1/upstreams/rotate", rotateTokens),
  httpRoute("POST /v1/push", addDevice, { status: 201 }),
  httpRoute("GET /v1/push", listDevices),
  httpRoute("PATCH /v1/push/{id}", changeDevice, device),
  httpRoute("POST /v1/push/{id}/test", testDevice, device),
  httpRoute("DELETE /v1/push/{id}", removeDevice, device),
];

const ROWS: ReadonlyMap<ServiceOperation, HttpRow> = new Map(HTTP_TABLE.map((row) => [row.op, row]));

/** The operation's row. Undefined for operations that need direct access to the data. */
export function rowOf(op: ServiceOperation): HttpRow | undefined {
  return ROWS.get(op);
}

function prefersJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const wanted = accept.split(",").map((part) => part.split(";")[0]!.trim().toLowerCase());
  return wanted.includes("application/json") && !wanted.includes("application/x-ndjson");
}
