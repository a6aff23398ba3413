/** Every operation of the service, in the order of the reference. */
import type { Operation } from "../operation.ts";
import { listAlerts } from "./alerts.ts";
import { publishAnchor } from "./anchors.ts";
import { approve, breakGlass, deny, getApproval, listApprovals, preApprove } from "./approvals.ts";
import { bundleLedger, bundleRun, evidenceKey, verifyLedger } from "./bundles.ts";
import { listConnectors } from "./connectors.ts";
import { createDelegation, listDelegations, revokeDelegation } from "./delegations.ts";
import { exportRun } from "./export.ts";
import { halt, listHalts, resume } from "./halts.ts";
import { listHolds, placeHold, releaseHold } from "./holds.ts";
import { impact } from "./impact.ts";
import { intent, outcome, resolve } from "./journal.ts";
import { changeKey, createKey, deleteKey, listKeys } from "./keys.ts";
import {
  activatePolicy,
  approveManifest,
  deprecateManifest,
  publishManifest,
  publishPolicy,
  readRegistry,
} from "./registry.ts";
import { reload } from "./reload.ts";
import { replay } from "./replay.ts";
import { periodReport, runReport, runReportAsPdf } from "./reports.ts";
import { getRetentionPlan, runRetention } from "./retention.ts";
import { beginUndo, completeUndo, getRollback, plan, startRollback } from "./rollback.ts";
import { getRun, listRuns, openRun } from "./runs.ts";
import { searchRecords, searchRuns } from "./search.ts";
import { simulate } from "./simulate.ts";
import { speculate } from "./speculate.ts";
import { status } from "./status.ts";

export const OPERATIONS: readonly Operation[] = [
  openRun,
  listRuns,
  getRun,
  intent,
  outcome,
  exportRun,
  runReport,
  runReportAsPdf,
  bundleRun,
  resolve,
  plan,
  startRollback,
  getRollback,
  beginUndo,
  completeUndo,
  listApprovals,
  getApproval,
  approve,
  deny,
  breakGlass,
  preApprove,
  listDelegations,
  createDelegation,
  revokeDelegation,
  searchRuns,
  searchRecords,
  simulate,
  replay,
  impact,
  speculate,
  periodReport,
  bundleLedger,
  evidenceKey,
  verifyLedger,
  publishAnchor,
  listAlerts,
  status,
  listConnectors,
  listHalts,
  halt,
  resume,
  readRegistry,
  publishManifest,
  approveManifest,
  deprecateManifest,
  publishPolicy,
  activatePolicy,
  reload,
  listHolds,
  placeHold,
  releaseHold,
  getRetentionPlan,
  runRetention,
  listKeys,
  createKey,
  changeKey,
  deleteKey,
];
