/**
 * The library: `open` runs the engine in this process, `connect` talks to a server.
 *
 * @module takeback
 */

export type { BeforeRead } from "./engine/before.ts";
export type { Decision } from "./engine/decide/verdict.ts";
export { SvcError } from "./kernel/errors.ts";
export type { Json } from "./kernel/json.ts";
export type { Approvals, DecideOptions, OfferedApproval, Wait } from "./library/approvals.ts";
export { type ConnectOptions, connect, type RemoteSvc } from "./library/connect.ts";
export type { DrillCall, DrillOptions } from "./library/drill.ts";
export { BlockedError, type Offer, UncertainError } from "./library/errors.ts";
export { type OpenOptions, open, type RunOptions, type Svc } from "./library/open.ts";
export type { CallOptions, Run } from "./library/run.ts";
export type {
  Allowed,
  Asked,
  Intent,
  Outcome,
  PlannedCall,
  Preview,
  RollbackRequest,
} from "./library/transport.ts";
export type { ApprovalView } from "./model/approval.ts";
export type { PlanView } from "./model/plan.ts";
export type { DrillDoc } from "./model/proof.ts";
export { RollbackInterrupted } from "./rollback/execute.ts";
export type {
  CompensateAction,
  DeferAction,
  PlainAction,
  PlanAction,
  RollbackPlan,
} from "./rollback/plan.ts";
export type { CompensationCall, Compensator, Overwrite, Reader, ReadRequest } from "./rollback/ports.ts";
export type { Failure, RollbackReport } from "./rollback/report.ts";
