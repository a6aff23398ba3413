/** The HTTP table: every operation, in the order of the reference. */
import type { Operation } from "../app/door/operation.ts";
import { listAlerts } from "../app/operations/alerts.ts";
import { publishAnchor } from "../app/operations/anchors.ts";
import {
  approve,
  breakGlass,
  deny,
  getApproval,
  getCard,
  listApprovals,
  preApprove,
  withdraw,
} from "../app/operations/approvals.ts";
import { bundleLedger, bundleRun, evidenceKey, verifyLedger } from "../app/operations/bundles.ts";
import { ledgerCheckpoint, ledgerConsistency, ledgerInclusion } from "../app/operations/checkpoints.ts";
import { listConnectors } from "../app/operations/connectors.ts";
import { contain, containForetold, containStarted, getContain } from "../app/operations/contain.ts";
import { createDelegation, listDelegations, revokeDelegation } from "../app/operations/delegations.ts";
import { listDrills, startDrills } from "../app/operations/drills.ts";
import { exportRun } from "../app/operations/export.ts";
import { createGrant, listGrants, previewGrant, revokeGrant } from "../app/operations/grants.ts";
import { halt, listHalts, resume } from "../app/operations/halts.ts";
import { listHolds, placeHold, releaseHold } from "../app/operations/holds.ts";
import { horizon } from "../app/operations/horizon.ts";
import { impact } from "../app/operations/impact.ts";
import { intent, outcome, previewIntent, resolve } from "../app/operations/journal.ts";
import { changeKey, createKey, deleteKey, listKeys } from "../app/operations/keys.ts";
import { oversightReport } from "../app/operations/oversight.ts";
import {
  approvePlan,
  denyPlan,
  getPlan,
  listPlans,
  proposePlan,
  withdrawPlan,
} from "../app/operations/plans.ts";
import { diffPolicy } from "../app/operations/policy-diff.ts";
import {
  activatePolicy,
  approveManifest,
  deprecateManifest,
  policyShape,
  publishManifest,
  publishPolicy,
  readRegistry,
  waitingPolicy,
} from "../app/operations/registry.ts";
import { reload } from "../app/operations/reload.ts";
import { replay } from "../app/operations/replay.ts";
import { periodReport, runReport, runReportAsPdf } from "../app/operations/reports.ts";
import { getRetentionPlan, runRetention } from "../app/operations/retention.ts";
import {
  beginUndo,
  completeUndo,
  getRollback,
  plan,
  rollbackPlanned,
  rollbackStarted,
  startRollback,
} from "../app/operations/rollback.ts";
import { getRun, listRuns, openRun } from "../app/operations/runs.ts";
import { searchRecords, searchRuns } from "../app/operations/search.ts";
import { simulate } from "../app/operations/simulate.ts";
import { speculate } from "../app/operations/speculate.ts";
import { status } from "../app/operations/status.ts";
import { LIMITS } from "../kernel/limits.ts";
import { at, type Field, flag, type HeaderField, plain, type Row, whole } from "./row.ts";

const run = { params: { id: plain("run_id") } };
const step = {
  params: { id: plain("run_id"), n: whole("step", "must be a step number") },
};
const planned = { params: { id: plain("plan_id") } };
const approval = { params: { id: plain("approval_id") } };
const entry = {
  params: { index: whole("index", "must be the index of a key entry") },
};

const RECORDS = "must be a whole number of records";
const limit = whole("limit", `must be a whole number from 1 to ${LIMITS.page_max}`);
const page = [limit, plain("cursor")];
const texts = (...names: string[]): Field[] => names.map(plain);

const once: HeaderField = {
  header: "Idempotency-Key",
  field: "idempotency_key",
  about: "a retry under the same key gets the first answer again",
  schema: { type: "string", minLength: 1, maxLength: LIMITS.idempotency_key_chars },
  read: (text) => text,
  write: String,
};
/** May be quoted as ETags are. */
const matching: HeaderField = {
  header: "If-Match",
  field: "fingerprint",
  about: "the fingerprint of the entry that is meant",
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

export const HTTP_TABLE: readonly Row[] = [
  at("POST /v1/runs", openRun, { status: 201 }),
  at("GET /v1/runs", listRuns, { query: page }),
  at("GET /v1/runs/{id}", getRun, run),
  at("POST /v1/runs/{id}/intents", intent, { ...run, headers: [once] }),
  at("POST /v1/runs/{id}/intents/preview", previewIntent, run),
  at("POST /v1/runs/{id}/steps/{n}/outcome", outcome, { ...step, headers: [once] }),
  at("GET /v1/runs/{id}/export", exportRun, { ...run, headers: [accepting] }),
  at("GET /v1/runs/{id}/report", runReport, run),
  at("GET /v1/runs/{id}/report.pdf", runReportAsPdf, run),
  at("GET /v1/runs/{id}/bundle", bundleRun, run),
  at("POST /v1/runs/{id}/steps/{n}/resolve", resolve, step),
  at("GET /v1/runs/{id}/plan", plan, run),
  at("POST /v1/runs/{id}/rollback", startRollback, {
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
  at("GET /v1/runs/{id}/rollback", getRollback, run),
  at("POST /v1/runs/{id}/steps/{n}/compensation", beginUndo, step),
  at("POST /v1/runs/{id}/steps/{n}/compensation/outcome", completeUndo, step),
  at("GET /v1/approvals", listApprovals, { query: [...texts("status", "run_id"), ...page] }),
  at("GET /v1/approvals/{id}", getApproval, {
    ...approval,
    query: [whole("wait", `must be whole seconds, at most ${LIMITS.approval_wait_s}`)],
  }),
  at("GET /v1/approvals/{id}/card", getCard, approval),
  at("POST /v1/approvals/{id}/approve", approve, approval),
  at("POST /v1/approvals/{id}/deny", deny, approval),
  at("POST /v1/approvals/{id}/withdraw", withdraw, approval),
  at("POST /v1/approvals/{id}/break-glass", breakGlass, approval),
  at("POST /v1/runs/{id}/approvals", preApprove, { ...run, status: 201 }),
  at("GET /v1/delegations", listDelegations, { query: page }),
  at("POST /v1/delegations", createDelegation, { status: 201 }),
  at("DELETE /v1/delegations/{id}", revokeDelegation, { params: { id: plain("delegation_id") } }),
  at("POST /v1/runs/{id}/plans", proposePlan, { ...run, status: 201 }),
  at("GET /v1/plans", listPlans, { query: [...texts("status", "run_id"), ...page] }),
  at("GET /v1/plans/{id}", getPlan, planned),
  at("POST /v1/plans/{id}/approve", approvePlan, planned),
  at("POST /v1/plans/{id}/deny", denyPlan, planned),
  at("POST /v1/plans/{id}/withdraw", withdrawPlan, planned),
  at("POST /v1/grants", createGrant, { status: 201 }),
  at("GET /v1/grants", listGrants, { query: page }),
  at("POST /v1/grants/preview", previewGrant),
  at("DELETE /v1/grants/{id}", revokeGrant, { params: { id: plain("grant_id") } }),
  at("GET /v1/search/runs", searchRuns, {
    query: [
      ...texts("actor", "tool", "tenant", "mode", "status", "event", "since", "until"),
      flag("attention"),
      ...texts("q", "order"),
      ...page,
    ],
  }),
  at("GET /v1/search/records", searchRecords, {
    query: [...texts("run_id", "event", "actor", "tool", "since", "until", "q"), ...page],
  }),
  at("POST /v1/simulate", simulate),
  at("POST /v1/runs/{id}/replay", replay, run),
  at("GET /v1/impact", impact, { query: texts("tool", "args", "actor") }),
  at("POST /v1/speculate", speculate),
  at("POST /v1/policy/diff", diffPolicy),
  at("GET /v1/report", periodReport, { query: texts("since", "format") }),
  at("GET /v1/report/oversight", oversightReport, {
    query: [...texts("since", "format"), flag("anonymous")],
  }),
  at("GET /v1/ledger/bundle", bundleLedger),
  at("GET /v1/ledger/checkpoint", ledgerCheckpoint, { query: [flag("witnessed")] }),
  at("GET /v1/ledger/consistency", ledgerConsistency, {
    query: [whole("from", RECORDS), whole("to", RECORDS)],
  }),
  at("GET /v1/ledger/inclusion", ledgerInclusion, {
    query: [whole("seq", "must be the number of a record"), whole("size", RECORDS)],
  }),
  at("GET /v1/evidence/key", evidenceKey),
  at("GET /v1/ledger/verify", verifyLedger),
  at("POST /v1/anchor", publishAnchor),
  at("GET /v1/horizon", horizon, { query: [...texts("within"), ...page] }),
  at("GET /v1/alerts", listAlerts),
  at("GET /v1/status", status),
  at("GET /v1/connectors", listConnectors),
  at("GET /v1/halts", listHalts),
  at("POST /v1/halt", halt, { status: 201 }),
  at("POST /v1/resume", resume),
  at("POST /v1/contain", contain, {
    shape: containForetold,
    also: [
      {
        status: 202,
        about: "the containment was begun, or goes on; the halt is in force",
        shape: containStarted,
        is: (answer) => "job" in answer,
      },
    ],
  }),
  at("GET /v1/contain/{id}", getContain, { params: { id: plain("contain_id") } }),
  at("POST /v1/drills", startDrills, { status: 202 }),
  at("GET /v1/drills", listDrills),
  at("GET /v1/registry", readRegistry),
  at("POST /v1/registry/manifests", publishManifest, { status: 201 }),
  at("POST /v1/registry/manifests/{tool}/approve", approveManifest, { params: { tool: plain("tool") } }),
  at("POST /v1/registry/manifests/{tool}/deprecate", deprecateManifest, { params: { tool: plain("tool") } }),
  at("POST /v1/registry/policy", publishPolicy, { status: 201 }),
  at("POST /v1/registry/policy/{version}/activate", activatePolicy, {
    params: { version: plain("version") },
    shape: policyShape,
    also: [
      {
        status: 202,
        about: "it is looser somewhere, and waits until another admin activates it, too",
        shape: waitingPolicy,
        is: (answer) => "waiting_for" in answer,
      },
    ],
  }),
  at("POST /v1/reload", reload),
  at("GET /v1/holds", listHolds, { query: [flag("all"), ...page] }),
  at("POST /v1/holds", placeHold, { status: 201 }),
  at("DELETE /v1/holds/{id}", releaseHold, { params: { id: plain("hold_id") } }),
  at("GET /v1/retention/plan", getRetentionPlan, {
    query: [whole("days", "must be a positive whole number of days"), ...page],
  }),
  at("POST /v1/retention/apply", runRetention),
  at("GET /v1/keys", listKeys),
  at("POST /v1/keys", createKey, { status: 201 }),
  at("PATCH /v1/keys/{index}", changeKey, { ...entry, headers: [matching] }),
  at("DELETE /v1/keys/{index}", deleteKey, { ...entry, headers: [matching] }),
];

const ROWS: ReadonlyMap<Operation, Row> = new Map(HTTP_TABLE.map((row) => [row.op, row]));

/** Where an operation is found over HTTP; some are for whoever holds the data only. */
export function rowOf(op: Operation): Row | undefined {
  return ROWS.get(op);
}

function prefersJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const wanted = accept.split(",").map((part) => part.split(";")[0]!.trim().toLowerCase());
  return wanted.includes("application/json") && !wanted.includes("application/x-ndjson");
}
